/* Glob: a pattern on the names of sensors. `*` stands for any run of characters, `?` for one character (of UTF-8), everything
 * else for itself; the empty pattern matches every name.
 *
 * Patterns come from peers, so matching costs a bounded number of steps whatever pattern and name are: all positions in the
 * pattern that the name read so far may have reached are bits of a few words, and a byte of the name moves them all at once
 * (Baeza-Yates and Gonnet, "A new approach to text searching", 1992). No recursion, no backtracking. */
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

/* Whether there may be a name that both patterns match, of at most HK_GLOB_MAX bytes each, with a 0 behind them. True also where
 * only a
 * `?` that would have to be several characters, or none, makes it so. */
bool hk_globs_meet(const char *a, const char *b);

#endif
