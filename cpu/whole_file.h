/* Reads a whole file. Any thread. */
#ifndef HK_WHOLE_FILE_H
#define HK_WHOLE_FILE_H

#include <stddef.h>

/* Reads a file of at most `most` bytes into memory that the caller frees, also after an error; *out may be NULL then. Returns 0,
 * or a negative errno; -EFBIG: the file is larger. */
int hk_whole_file_read(const char *path, size_t most, char **out, size_t *length);

#endif
