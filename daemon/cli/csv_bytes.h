/* Bytes of a recording as UTF-8: from a file or a pipe, unpacked where they are packed (gzip, zstd, xz, bzip2), and turned from
 * UTF-16 where a byte order mark, or the zero bytes of ASCII, say so. Thread: the caller's. */
#ifndef HK_CSV_BYTES_H
#define HK_CSV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hk_csv_bytes;

/* "-" is standard input. 0 and *out, or a negative errno with a message. */
int hk_csv_bytes_open(struct hk_csv_bytes **out, const char *path, char *error, size_t size);
void hk_csv_bytes_close(struct hk_csv_bytes *bytes); /* NULL is allowed */

/* Begins again at the first byte; only where `regular`. 0, or a negative errno with a message. */
int hk_csv_bytes_rewind(struct hk_csv_bytes *bytes, char *error, size_t size);

/* Waits for bytes, at most `room` (64 or more). Their number, 0 at the end, or a negative errno with a message. */
ssize_t hk_csv_bytes_read(struct hk_csv_bytes *bytes, char *to, size_t room, char *error, size_t size);

/* A plain file, which can be read twice. */
bool hk_csv_bytes_regular(const struct hk_csv_bytes *bytes);
/* Reading never waits for a writer that is slow: a file, or what is packed. */
bool hk_csv_bytes_ready(const struct hk_csv_bytes *bytes);
int hk_csv_bytes_fd(const struct hk_csv_bytes *bytes);
/* Share of the file that was read, 0..1; negative when its size is not known. */
double hk_csv_bytes_progress(const struct hk_csv_bytes *bytes);

#endif
