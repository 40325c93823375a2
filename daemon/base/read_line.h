/* Reads lines of text files, and detects NUL bytes in them. Thread: any. */
#ifndef HK_READ_LINE_H
#define HK_READ_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Reads as fgets does: at most size - 1 bytes, up to and including the next LF, and terminates them with 0. *nul: the line
 * contains a 0 byte, after which string functions see nothing; a disk that lost a block leaves such lines. Returns the number of
 * bytes; 0 at the end of the file or on an error (ferror). */
size_t hk_read_line(FILE *file, char *out, size_t size, bool *nul);

#endif
