/* Reads files with secrets or trust (tokens, certificates, keys, revocation lists) and the daemon's configuration. Files are
 * read whole, with bounded size, and no path can block the reader for ever: neither a device, a directory, nor a FIFO without
 * a writer. Thread: any. */
#ifndef HK_SECRET_FILE_H
#define HK_SECRET_FILE_H

#include <stddef.h>

#define HK_SECRET_WHY 96 /* bytes of a reason, including the NUL */

enum {
  HK_SECRET_FILE = 0,   /* accepts regular files only */
  HK_SECRET_PIPE = 2000 /* also accepts a FIFO, as of a shell's <(command): timeout, ms, for programs that a person waits for */
};

/* Reads a file of at most `most` bytes. Returns 0 with *data (NUL-terminated; the caller frees it with hk_secret_free) and
 * *size; or a negative errno with the reason in `why`: -EINVAL: not a file; -EFBIG; -EAGAIN: modified while it was read,
 * several times; -ETIMEDOUT; or the errors of open and read. */
int hk_secret_read(const char *path, size_t most, int patience, char **data, size_t *size, char why[HK_SECRET_WHY]);
/* Overwrites the data, then frees it. NULL is allowed. */
void hk_secret_free(char *data, size_t size);

#endif
