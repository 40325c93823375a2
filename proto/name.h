/* The rule for names of sensors: 1..HK_NAME_MAX bytes of valid UTF-8 with no control characters (U+0000-001F, U+007F-009F). */
#ifndef HK_NAME_H
#define HK_NAME_H

#include <stdbool.h>
#include <stddef.h>

#define HK_NAME_MAX 512 /* bytes */

bool hk_name_valid(const char *name, size_t length);

/* The rule without the limits of length: a piece of a name. On failure *fault (may be NULL) is the offset of the first bad byte.
 */
bool hk_name_piece_valid(const char *piece, size_t length, size_t *fault);

#endif
