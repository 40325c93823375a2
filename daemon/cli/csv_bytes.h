/* Reads a recording as UTF-8 from a file or a pipe: decompresses it (gzip, zstd, xz, bzip2) and converts UTF-16, recognised by a
 * byte order mark or the zero bytes of ASCII. Thread: the caller's. */
#ifndef HK_CSV_BYTES_H
#define HK_CSV_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct hk_csv_bytes;

/* Opens a path; "-" is standard input. Returns 0 and *out, or a negative errno with a message. */
int hk_csv_bytes_open(struct hk_csv_bytes **out, const char *path, char *error, size_t size);
void hk_csv_bytes_close(struct hk_csv_bytes *bytes); /* NULL is allowed */

/* Returns to the first byte; only if `regular`. Returns 0, or a negative errno with a message. */
int hk_csv_bytes_rewind(struct hk_csv_bytes *bytes, char *error, size_t size);

/* Reads at most `room` (at least 64) bytes, waiting for some. Returns their number, 0 at the end, or a negative errno with a
 * message. */
ssize_t hk_csv_bytes_read(struct hk_csv_bytes *bytes, char *to, size_t room, char *error, size_t size);

/* Whether it is a plain file, which can be read twice. */
bool hk_csv_bytes_regular(const struct hk_csv_bytes *bytes);
/* Whether a read would not block on a slow writer: a file, or compressed input. */
bool hk_csv_bytes_ready(const struct hk_csv_bytes *bytes);
int hk_csv_bytes_fd(const struct hk_csv_bytes *bytes);
/* Share of the file read so far, 0..1; negative if its size is unknown. */
double hk_csv_bytes_progress(const struct hk_csv_bytes *bytes);

#endif
