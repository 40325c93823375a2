/* Rule for names of sensors: 1..HK_NAME_MAX bytes of valid UTF-8 without control characters (U+0000-001F, U+007F-009F). */
#ifndef HK_NAME_H
#define HK_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_NAME_MAX 512 /* bytes */

bool hk_name_valid(const char *name, size_t length);

/* The same rule for a piece of a name, of any length. On failure sets *fault (may be NULL) to the offset of the first bad
 * byte. */
bool hk_name_piece_valid(const char *piece, size_t length, size_t *fault);

#define HK_SHOWN_AS_IT_IS 0xffffffffu
/* Size of the first character of text[0..length-1], bytes; length at least 1. *code: HK_SHOWN_AS_IT_IS, or the code of a
 * character that must not be sent to a terminal unescaped, because it moves the cursor or changes the direction of text:
 * control characters (U+0000-001F, U+007F-009F), marks of direction (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069) and
 * line separators (U+2028, U+2029); U+FFFD for a byte that is not UTF-8. Names may hold such characters, except control
 * characters: a displayed name must not look like another. */
size_t hk_text_character(const char *text, size_t length, uint32_t *code);

#endif
