/* See tokens.h. */
#include "daemon/config/tokens.h"

#include "daemon/base/glob.h"
#include "daemon/base/grow.h"
#include "daemon/base/read_line.h"
#include "daemon/config/listener_rules.h"
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#ifdef HK_HAVE_TLS
#include <openssl/crypto.h>
#include <openssl/evp.h>
#endif

#define LINE_MAX_BYTES 512
#define FILE_MOST (4u << 20) /* bytes */

struct entry {
  struct hk_token token; /* first: a returned token is converted back to its entry */
  struct hk_glob *feeds; /* NULL: none of its own */
};

struct hk_tokens {
  uint32_t n, capacity;
  struct entry *entry;
};

static int tokens_hash(const char *token, size_t length, uint8_t out[HK_TOKEN_HASH])
{
#ifdef HK_HAVE_TLS
  return EVP_Digest(token, length, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -EIO;
#else
  (void)token, (void)length, (void)out;
  return -ENOSYS;
#endif
}

static bool equal(const uint8_t *a, const uint8_t *b)
{
#ifdef HK_HAVE_TLS
  return CRYPTO_memcmp(a, b, HK_TOKEN_HASH) == 0;
#else
  (void)a, (void)b;
  return false;
#endif
}

static bool name_good(const char *name)
{
  const size_t length = strlen(name);
  for (size_t i = 0; i < length; i++)
    if (name[i] <= ' ' || name[i] > '~')
      return false;
  return length > 0 && length < HK_TOKEN_NAME_MAX && name[0] != '#';
}

static int tokens_digit(char c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hash(const char *hex, uint8_t out[HK_TOKEN_HASH])
{
  if (strlen(hex) != 2 * HK_TOKEN_HASH)
    return false;
  for (size_t i = 0; i < HK_TOKEN_HASH; i++) {
    const int high = tokens_digit(hex[2 * i]), low = tokens_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    out[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

static bool feeds_good(const char *glob)
{
  const size_t length = strlen(glob);
  return length > 0 && length <= HK_TOKEN_FEEDS_MAX && strcspn(glob, " \t\r\n") == length;
}

/* Parses a line, and modifies it. Returns NULL, or what is wrong with it. *feeds: the glob, NULL for none. */
static const char *tokens_read_line(char *line, struct hk_token *t, const char **feeds)
{
  char *rest, *name = strtok_r(line, " \t", &rest), *list = strtok_r(NULL, " \t", &rest), *proof = strtok_r(NULL, " \t", &rest);
  const char *more = proof ? strtok_r(NULL, " \t", &rest) : NULL;
  *t = (struct hk_token){ 0 };
  *feeds = more && strncmp(more, "feeds=", 6) == 0 ? more + 6 : NULL;
  if (!proof || (more && !*feeds) || (more && strtok_r(NULL, " \t", &rest)))
    return "a line is NAME SCOPES sha256:HEX, or NAME SCOPES certificate, and perhaps feeds=GLOB";
  if (*feeds && !feeds_good(*feeds))
    return "feeds= takes a glob of at most 128 bytes";
  if (!name_good(name))
    return "a name has 1 to 63 printable characters of ASCII";
  snprintf(t->name, sizeof t->name, "%s", name);
  if (hk_scopes_parse(list, &t->scopes) != 0)
    return "scopes are a list of feed, subscribe, admin with commas between them";
  t->certificate = strcmp(proof, "certificate") == 0;
  if (!t->certificate && (strncmp(proof, "sha256:", 7) != 0 || !read_hash(proof + 7, t->hash)))
    return "after the scopes comes sha256: and 64 hexadecimal digits, or certificate; `hankel token` makes such a line";
  return NULL;
}

_Static_assert(HK_TOKENS_MAX == 4096, "as is said below, and in hankeld.conf(5)");

static int tokens_add(struct hk_tokens *t, const struct hk_token *token, const char *feeds)
{
  struct entry *more = hk_grow(t->entry, t->n, &t->capacity, sizeof *more, 16);
  if (!more)
    return -ENOMEM;
  t->entry = more;
  struct entry *e = &t->entry[t->n];
  *e = (struct entry){ .token = *token };
  const int status = feeds ? hk_glob_new(&e->feeds, feeds, strlen(feeds)) : 0;
  t->n += status == 0;
  return status;
}

int hk_tokens_read(struct hk_tokens **out, FILE *file, const char *name, char *error, size_t size)
{
  char line[LINE_MAX_BYTES];
  struct hk_tokens *t = calloc(1, sizeof *t);
  const char *wrong = NULL;
  uint32_t number = 0;
  int status = t ? 0 : -ENOMEM;
  size_t length;
  bool nul;
  while (status == 0 && !wrong && (length = hk_read_line(file, line, sizeof line, &nul)) > 0) {
    struct hk_token token;
    const char *feeds;
    number++;
    if (nul)
      wrong = "a NUL byte: this is not text; the file is damaged";
    else if (length + 1 == sizeof line && line[length - 1] != '\n')
      wrong = "the line is too long";
    line[strcspn(line, "\r\n")] = 0;
    const char *first = line + strspn(line, " \t");
    if (wrong || *first == 0 || *first == '#')
      continue;
    wrong = tokens_read_line(line, &token, &feeds);
    if (!wrong && (token.certificate ? hk_tokens_certificate(t, token.name) : hk_tokens_again(t, &token)))
      wrong = "the same token or certificate is in the file already";
    if (!wrong && t->n == HK_TOKENS_MAX)
      wrong = "more than 4096 tokens and certificates";
    if (!wrong)
      status = tokens_add(t, &token, feeds);
  }
  if (status == 0 && !wrong && ferror(file))
    status = -EIO;
  if (wrong)
    snprintf(error, size, "%s:%u: %s", name, number, wrong);
  else if (status != 0)
    snprintf(error, size, "%s: %s", name, strerror(-status));
  if (wrong || status != 0) {
    hk_tokens_free(t);
    return wrong ? -EINVAL : status;
  }
  *out = t;
  return 0;
}

int hk_tokens_load(struct hk_tokens **out, const char *path, char *error, size_t size)
{
  char *data, why[HK_SECRET_WHY];
  size_t length;
  int status = hk_secret_read(path, FILE_MOST, HK_SECRET_FILE, &data, &length, why);
  if (status != 0) {
    snprintf(error, size, "%s: %s", path, why);
    return status;
  }
  if (length == 0) /* which fmemopen may refuse; there is room for the 0 after it */
    data[length++] = '\n';
  FILE *file = fmemopen(data, length, "r");
  status = file ? hk_tokens_read(out, file, path, error, size) : -errno;
  if (file)
    fclose(file);
  else
    snprintf(error, size, "%s: %s", path, strerror(-status));
  hk_secret_free(data, length);
  return status;
}

void hk_tokens_free(struct hk_tokens *t)
{
  if (!t)
    return;
  for (uint32_t i = 0; i < t->n; i++)
    hk_glob_free(t->entry[i].feeds);
  free(t->entry);
  free(t);
}

uint32_t hk_tokens_count(const struct hk_tokens *t)
{
  return t->n;
}

/* All are compared, so that the time does not depend on the token. */
static const struct hk_token *find_hash(const struct hk_tokens *t, const uint8_t *shown)
{
  const struct hk_token *found = NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (equal(t->entry[i].token.hash, shown) && !t->entry[i].token.certificate)
      found = &t->entry[i].token;
  return found;
}

const struct hk_token *hk_tokens_find(const struct hk_tokens *t, const char *token, size_t length)
{
  uint8_t shown[HK_TOKEN_HASH];
  return tokens_hash(token, length, shown) == 0 ? find_hash(t, shown) : NULL;
}

const struct hk_token *hk_tokens_certificate(const struct hk_tokens *t, const char *name)
{
  for (uint32_t i = 0; i < t->n; i++)
    if (t->entry[i].token.certificate && strcmp(t->entry[i].token.name, name) == 0)
      return &t->entry[i].token;
  return NULL;
}

const struct hk_token *hk_tokens_again(const struct hk_tokens *t, const struct hk_token *entry)
{
  return entry->certificate ? hk_tokens_certificate(t, entry->name) : find_hash(t, entry->hash);
}

bool hk_tokens_may_feed(const struct hk_tokens *t, const struct hk_token *token, const char *name, size_t length)
{
  const struct entry *own = (const struct entry *)token;
  if (own->feeds)
    return hk_glob_match(own->feeds, name, length);
  for (uint32_t i = 0; i < t->n; i++)
    if (t->entry[i].feeds && hk_glob_match(t->entry[i].feeds, name, length))
      return false;
  return true;
}

int hk_token_make(const char *name, uint32_t scopes, const char *feeds, char token[HK_TOKEN_LENGTH + 1], char *line, size_t size)
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint8_t random[HK_TOKEN_LENGTH], hashed[HK_TOKEN_HASH];
  char list[HK_SCOPES_TEXT];
  if (!name_good(name) || (feeds && !feeds_good(feeds)))
    return -EINVAL;
  if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
    return -EIO;
  memcpy(token, "hkt_", 4);
  for (size_t i = 4; i < HK_TOKEN_LENGTH; i++)
    token[i] = letters[random[i] & 63]; /* 6 bits each, 258 in all */
  token[HK_TOKEN_LENGTH] = 0;
  const int status = tokens_hash(token, HK_TOKEN_LENGTH, hashed);
  if (status != 0)
    return status;
  hk_scopes_format(scopes, list);
  size_t used = (size_t)snprintf(line, size, "%s %s sha256:", name, list);
  for (size_t i = 0; i < HK_TOKEN_HASH && used + 2 < size; i++)
    used += (size_t)snprintf(line + used, size - used, "%02x", hashed[i]);
  if (feeds)
    snprintf(line + used, size - used, " feeds=%s", feeds);
  return 0;
}
