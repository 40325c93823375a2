/* Lines of a recording, in one buffer. A byte order mark is taken off the first; a line that is not UTF-8 is taken as
 * Windows-1252 (which Latin-1 is a part of) and turned. Thread: the caller's. */
#ifndef HK_CSV_LINES_H
#define HK_CSV_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_CSV_LINE_MAX (1u << 20) /* bytes */

struct hk_csv_lines;

/* 0 and *out, or a negative errno with a message that names the file. path outlives it. */
int hk_csv_lines_open(struct hk_csv_lines **out, const char *path, char *error, size_t size);
void hk_csv_lines_close(struct hk_csv_lines *lines); /* NULL is allowed */

/* Next line that is not blank, without its end and blanks before it, NUL-terminated; the caller may write into it until the next
 * call. 1, 0 at the end, or a negative errno with a message. */
int hk_csv_lines_next(struct hk_csv_lines *lines, char **line, char *error, size_t size);

/* Begins again at the first line; only where `regular`. 0, or a negative errno with a message. */
int hk_csv_lines_rewind(struct hk_csv_lines *lines, char *error, size_t size);

uint64_t hk_csv_lines_number(const struct hk_csv_lines *lines); /* of the last line, from 1 on */
bool hk_csv_lines_latin(const struct hk_csv_lines *lines);      /* a line was not UTF-8 */
bool hk_csv_lines_regular(const struct hk_csv_lines *lines);
/* False when the next call may wait for a writer. */
bool hk_csv_lines_ready(const struct hk_csv_lines *lines);
int hk_csv_lines_fd(const struct hk_csv_lines *lines);
double hk_csv_lines_progress(const struct hk_csv_lines *lines); /* 0..1; negative: not known */

/* Writes "file:line: message" without control characters. Returns -EINVAL. */
int hk_csv_wrong(const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
