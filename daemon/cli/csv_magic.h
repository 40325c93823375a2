/* Recognises compressed and other binary files by their first bytes. Pure functions. */
#ifndef HK_CSV_MAGIC_H
#define HK_CSV_MAGIC_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a file that begins with head[0..n-1] is compressed. *more: undecided, ask again with more bytes, at most HK_MAGIC_MOST.
 */
#define HK_MAGIC_MOST 6
bool hk_magic_packed(const unsigned char *head, size_t n, bool *more);
/* Text that names the format of a file that begins with head[0..n-1] and says how to convert it; NULL: not a known format. */
const char *hk_magic_other(const char *head, size_t n);

#endif
