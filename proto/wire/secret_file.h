/* Files that hold a secret, or say whom to trust: tokens, certificates, keys, lists; and the daemon's
 * configuration. They are read whole, within bounds, and nothing that their path leads to can make the reader wait for ever: a
 * device, a directory, or a FIFO that nobody writes to.
 *
 * Thread: any. */
#ifndef HK_SECRET_FILE_H
#define HK_SECRET_FILE_H

#include <stddef.h>

#define HK_SECRET_WHY 96 /* bytes of a reason, with the 0 */

enum {
  HK_SECRET_FILE = 0,   /* a file, and nothing else */
  HK_SECRET_PIPE = 2000 /* or a FIFO, as of a shell's <(command): ms that it may take, for a program that a person waits for */
};

/* Reads a file of at most so many bytes. 0 and *data (the caller's, to be freed with hk_secret_free; a 0 stands behind it) and
 * *size; or a negative errno and why, in words: -EINVAL: it is something else than a file; -EFBIG; -EAGAIN: it was changed
 * while it was read, several times; -ETIMEDOUT; or what open and read say. */
int hk_secret_read(const char *path, size_t most, int patience, char **data, size_t *size, char why[HK_SECRET_WHY]);
/* Overwrites it, and frees it. data: NULL is allowed. */
void hk_secret_free(char *data, size_t size);

#endif
