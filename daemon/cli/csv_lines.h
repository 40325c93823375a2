/* Reads the lines of a recording into one buffer. Removes a byte order mark from the first line; converts lines that are not
 * UTF-8 from Windows-1252 (which contains Latin-1). Thread: the caller's. */
#ifndef HK_CSV_LINES_H
#define HK_CSV_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CSV_LINE_MAX (1u << 20) /* bytes */

struct hk_csv_lines;

/* Returns 0 and *out, or a negative errno with a message that names the file. `path` must outlive *out. */
int hk_csv_lines_open(struct hk_csv_lines **out, const char *path, char *error, size_t size);
void hk_csv_lines_close(struct hk_csv_lines *lines); /* NULL is allowed */

/* Reads the next line that is not blank, without leading spaces and line end, terminated by NUL; the caller may modify it until
 * the next call. Returns 1, 0 at the end, or a negative errno with a message. */
int hk_csv_lines_next(struct hk_csv_lines *lines, char **line, char *error, size_t size);

/* Returns to the first line; only if `regular`. Returns 0, or a negative errno with a message. */
int hk_csv_lines_rewind(struct hk_csv_lines *lines, char *error, size_t size);

uint64_t hk_csv_lines_number(const struct hk_csv_lines *lines); /* number of the last line, from 1 */
bool hk_csv_lines_latin(const struct hk_csv_lines *lines);      /* a line was not UTF-8 */
bool hk_csv_lines_regular(const struct hk_csv_lines *lines);
/* False if the next call may block on a slow writer. */
bool hk_csv_lines_ready(const struct hk_csv_lines *lines);
int hk_csv_lines_fd(const struct hk_csv_lines *lines);
double hk_csv_lines_progress(const struct hk_csv_lines *lines); /* 0..1; negative: unknown */

/* Writes "file:line: message" without control characters. Returns -EINVAL. */
int hk_csv_wrong(const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
