/* What somebody may have meant. Pure. */
#ifndef HK_SUGGEST_H
#define HK_SUGGEST_H

#include <stddef.h>

/* Changes of a character (another one, one more, one less, two turned around) that make `other` of `word`; more than
 * HK_SUGGEST_FAR for whatever is further apart, or longer than 32 characters. */
#define HK_SUGGEST_FAR 2
unsigned hk_suggest_distance(const char *word, const char *other);

/* The nearest of n words, or NULL where none is near: at most HK_SUGGEST_FAR changes, and fewer than a word has characters.
 * words: the first of n pointers that lie `apart` bytes from each other, as the names in a table do. */
const char *hk_suggest(const char *word, const char *const *words, size_t n, size_t apart);

#endif
