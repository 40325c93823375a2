/* Decompresses recordings with libarchive; a build without it reports an error. Thread: the caller's. */
#ifndef HK_CSV_UNPACK_H
#define HK_CSV_UNPACK_H

#include <stddef.h>
#include <sys/types.h>

struct hk_unpack;

/* Reads up to `room` compressed bytes into `to`. Returns their number, 0 at the end, or a negative errno. */
typedef ssize_t hk_unpack_source(void *arg, char *to, size_t room);

/* Returns 0 and *out, or a negative errno with a message. */
int hk_unpack_open(struct hk_unpack **out, hk_unpack_source *source, void *arg, char *error, size_t size);
void hk_unpack_close(struct hk_unpack *unpack); /* NULL is allowed */

/* Reads the next decompressed bytes. Returns their number, 0 at the end, or a negative errno with a message. */
ssize_t hk_unpack_read(struct hk_unpack *unpack, char *to, size_t room, char *error, size_t size);

#endif
