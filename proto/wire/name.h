/* The rule for names of sensors: 1..HK_NAME_MAX bytes of valid UTF-8 with no control characters (U+0000-001F, U+007F-009F). */
#ifndef HK_NAME_H
#define HK_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_NAME_MAX 512 /* bytes */

bool hk_name_valid(const char *name, size_t length);

/* The rule without the limits of length: a piece of a name. On failure *fault (may be NULL) is the offset of the first bad byte.
 */
bool hk_name_piece_valid(const char *piece, size_t length, size_t *fault);

#define HK_SHOWN_AS_IT_IS 0xffffffffu
/* Bytes of the first character of text[0..length-1], length at least 1. *code: HK_SHOWN_AS_IT_IS, or the code of one that must
 * not reach a terminal as it is, for it moves the cursor or turns the text around it: control characters (U+0000-001F,
 * U+007F-009F), those of direction (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and separators of lines (U+2028, U+2029);
 * U+FFFD for a byte that is not of UTF-8. Names may hold them, but for control characters: what is shown must not look like
 * another name. */
size_t hk_text_character(const char *text, size_t length, uint32_t *code);

#endif
