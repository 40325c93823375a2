/* How packed files begin, and others that are no text. Pure. */
#ifndef HK_CSV_MAGIC_H
#define HK_CSV_MAGIC_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a file that begins with head[0..n-1] is packed. *more: it may be, and further bytes, up to HK_MAGIC_MOST, say it. */
#define HK_MAGIC_MOST 6
bool hk_magic_packed(const unsigned char *head, size_t n, bool *more);
/* What a file is that begins with head[0..n-1], and what can be done with it; NULL: it is none of those that are known. */
const char *hk_magic_other(const char *head, size_t n);

#endif
