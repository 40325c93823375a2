/* Suggestions for misspelt words. Pure. */
#ifndef HK_SUGGEST_H
#define HK_SUGGEST_H

#include <stddef.h>

/* How far a word is from one that may have been meant: the number of changes (substitution, insertion, deletion, transposition of
 * neighbours); at most 1 if `word` is the beginning of `other`, from three characters on; 0 for gpu and cuda. More than
 * HK_SUGGEST_FAR if there is no likeness: more changes, half of the longer word changed, or a word of over 32 characters. */
#define HK_SUGGEST_FAR 2
unsigned hk_suggest_distance(const char *word, const char *other);

/* The nearest of n words, or NULL if none is within HK_SUGGEST_FAR. words: the first of n pointers with a distance of `apart`
 * bytes, as the names in a table have. */
const char *hk_suggest(const char *word, const char *const *words, size_t n, size_t apart);

/* Appends "; did you mean WORD?" to a message of `size` bytes, if `word` is near a word of `list`, whose words are separated by
 * ", ". Nothing is appended for which there is no room. */
void hk_suggest_of(const char *word, const char *list, char *message, size_t size);

#endif
