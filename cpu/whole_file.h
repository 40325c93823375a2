/* A file that is read whole. Pure; any thread. */
#ifndef HK_WHOLE_FILE_H
#define HK_WHOLE_FILE_H

#include <stddef.h>

/* Reads a file of at most `most` bytes into memory that is the caller's to free, also after an error; *out may be NULL then. 0,
 * or a negative errno: -EFBIG: it is larger. */
int hk_whole_file_read(const char *path, size_t most, char **out, size_t *length);

#endif
