/* Tokens: the rights of peers. A token file has a line for each known peer,
 *
 *     NAME SCOPES sha256:HEX      a peer that presents the token with this SHA-256
 *     NAME SCOPES certificate     a peer whose certificate has this common name
 *
 * SCOPES is a list as for hk_scopes_parse. `feeds=GLOB` after that reserves names of feeds (FEED of PROTOCOL.md) for this peer:
 * it may use no others, and no other peer of the file, except with such a glob, may use these. Blank lines, and lines that begin
 * with #, are skipped. A token is `hkt_` and 43 characters for 256 random bits, so its hash need not be a slow one. The file
 * holds no secret: a token cannot be computed from its hash. `hankel token` makes both.
 *
 * A table is immutable once it is read, and replaced as a whole. Thread: any. */
#ifndef HK_TOKENS_H
#define HK_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HK_TOKENS_MAX 4096     /* entries of a table, including certificates: each search examines all */
#define HK_TOKEN_MAX 256       /* bytes of a presented token */
#define HK_TOKEN_LENGTH 47     /* bytes of a new token */
#define HK_TOKEN_HASH 32       /* bytes: SHA-256 */
#define HK_TOKEN_NAME_MAX 64   /* bytes of a peer's name, with the 0 */
#define HK_TOKEN_FEEDS_MAX 128 /* bytes of the glob of its feeds */

struct hk_token {
  char name[HK_TOKEN_NAME_MAX];
  uint32_t scopes; /* enum hk_scope */
  bool certificate;
  uint8_t hash[HK_TOKEN_HASH]; /* all 0 for a certificate */
};

struct hk_tokens;

/* Reads a table. Returns 0 and *out, -EINVAL with a message that names the first invalid line, or another negative errno with a
 * message. */
int hk_tokens_read(struct hk_tokens **out, FILE *file, const char *name, char *error, size_t size);
int hk_tokens_load(struct hk_tokens **out, const char *path, char *error, size_t size);
void hk_tokens_free(struct hk_tokens *tokens); /* NULL is allowed */
uint32_t hk_tokens_count(const struct hk_tokens *tokens);

/* Finds the entry of a token; NULL: none, as in a build without OpenSSL. Its time does not depend on the token: it hashes the
 * token, and compares every byte of every hash. */
const struct hk_token *hk_tokens_find(const struct hk_tokens *tokens, const char *token, size_t length);
/* hk_tokens_again: finds the entry with the hash, or the certificate name, of an entry of another table; hk_tokens_certificate:
 * finds the one for certificates of this name. NULL: none (any more). */
const struct hk_token *hk_tokens_again(const struct hk_tokens *tokens, const struct hk_token *entry);
const struct hk_token *hk_tokens_certificate(const struct hk_tokens *tokens, const char *name);

/* Whether the peer of an entry of this table may use a feed of this name. */
bool hk_tokens_may_feed(const struct hk_tokens *tokens, const struct hk_token *entry, const char *name, size_t length);

/* Makes a token, and the line of the file for it; feeds: the glob, NULL for none. Returns 0; -EINVAL: not a name (1 to 63
 * printable characters of ASCII without blanks, not beginning with #), or not a glob (1 to HK_TOKEN_FEEDS_MAX bytes without
 * blanks); -ENOSYS: built without OpenSSL; -EIO: no random numbers. */
int hk_token_make(const char *name, uint32_t scopes, const char *feeds, char token[HK_TOKEN_LENGTH + 1], char *line, size_t size);

#endif
