/* Lines of a text file, of which none may hide anything. Thread: any. */
#ifndef HK_READ_LINE_H
#define HK_READ_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Reads what fgets would: up to size - 1 bytes, to the next LF and with it, and a 0 behind. *nul: a byte of it is 0, so that a
 * string's functions see only what stands before; a disk that lost a block leaves such lines. Returns the bytes; 0: at the end,
 * or a fault (ferror). */
size_t hk_read_line(FILE *file, char *out, size_t size, bool *nul);

#endif
