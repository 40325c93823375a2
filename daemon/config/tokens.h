/* Tokens: who may do what. A token file has a line for each peer that it knows,
 *
 *     NAME SCOPES sha256:HEX      a peer that shows the token whose SHA-256 that is
 *     NAME SCOPES certificate     a peer whose certificate has this common name
 *
 * SCOPES being a list as of hk_scopes_parse. `feeds=GLOB` behind that says which names of feeds (FEED of PROTOCOL.md) are this
 * peer's own: it may say no others, and nobody else of the file, who has no such glob for them, may say these. Blank lines, and
 * those that begin with #, are skipped. A token is `hkt_` and 43 characters for 256 random bits, so that its hash need not be a
 * slow one. The file holds no secret: a token cannot be had from its hash. `hankel token` makes both.
 *
 * A table never changes once it is read; another one takes its place. Thread: any. */
#ifndef HK_TOKENS_H
#define HK_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HK_TOKENS_MAX 4096     /* of a table, certificates among them: all are looked at whenever one is shown */
#define HK_TOKEN_MAX 256       /* bytes of a token that is shown */
#define HK_TOKEN_LENGTH 47     /* of one that is made */
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

/* Reads a table. 0 and *out, -EINVAL with a message that names the first line that is wrong, or another negative errno with a
 * message. */
int hk_tokens_read(struct hk_tokens **out, FILE *file, const char *name, char *error, size_t size);
int hk_tokens_load(struct hk_tokens **out, const char *path, char *error, size_t size);
void hk_tokens_free(struct hk_tokens *tokens); /* NULL is allowed */
uint32_t hk_tokens_count(const struct hk_tokens *tokens);

/* The entry of a token; NULL: none, as in a build without OpenSSL. It takes as long whatever is shown: it hashes that, and looks
 * at every byte of every hash. */
const struct hk_token *hk_tokens_find(const struct hk_tokens *tokens, const char *token, size_t length);
/* The entry that has this hash, or is for certificates of this name; NULL: none (any more). */
const struct hk_token *hk_tokens_again(const struct hk_tokens *tokens, const struct hk_token *entry);
const struct hk_token *hk_tokens_certificate(const struct hk_tokens *tokens, const char *name);

/* Whether the peer of an entry of this table may use a feed of this name. */
bool hk_tokens_may_feed(const struct hk_tokens *tokens, const struct hk_token *entry, const char *name, size_t length);

/* Makes a token, and the line of the file for it; feeds: the glob, NULL for none. 0, -EINVAL: not a name (1 to 63 printable
 * characters of ASCII without blanks, no # in front), or not a glob (1 to HK_TOKEN_FEEDS_MAX bytes without blanks); -ENOSYS:
 * built without OpenSSL; -EIO: no random numbers. */
int hk_token_make(const char *name, uint32_t scopes, const char *feeds, char token[HK_TOKEN_LENGTH + 1], char *line, size_t size);

#endif
