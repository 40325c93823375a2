/* Glob: a pattern for sensor names. `*` matches any run of characters, `?` one character (of UTF-8), any other character itself;
 * the empty pattern matches every name.
 *
 * Patterns come from peers, so the cost of matching is bounded for every pattern and name: the positions in the pattern that the
 * name read so far can have reached are bits of a few words, and each byte of the name advances them together (Baeza-Yates and
 * Gonnet, "A new approach to text searching", 1992). No recursion, no backtracking. */
#ifndef HK_GLOB_H
#define HK_GLOB_H

#include "proto/wire/frame.h" /* HK_GLOB_MAX */

#include <stdbool.h>
#include <stddef.h>

struct hk_glob;

/* Compiles a pattern of `length` bytes. Returns 0 and *out, -EINVAL when it is longer than HK_GLOB_MAX, or -ENOMEM. Owner: the
 * caller. */
int hk_glob_new(struct hk_glob **out, const char *pattern, size_t length);
void hk_glob_free(struct hk_glob *glob); /* NULL is allowed */

bool hk_glob_match(const struct hk_glob *glob, const char *name, size_t length);

/* Whether a name may exist that both patterns match. May also be true if only a `?` that stands for no or several characters
 * would make it so. a, b: terminated by 0, at most HK_GLOB_MAX bytes. */
bool hk_globs_meet(const char *a, const char *b);

#endif
