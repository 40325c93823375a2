/* Lines of a recording. Unread bytes are at begin..end of one buffer. */
#include "daemon/cli/csv_lines.h"
#include "daemon/cli/csv_bytes.h"
#include "daemon/cli/csv_magic.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_START (1u << 16)

struct hk_csv_lines {
  const char *path; /* for messages; the caller's */
  struct hk_csv_bytes *bytes;
  bool end_of_file, latin;
  char *buffer;
  size_t begin, end, capacity;
  char *turned; /* the last line that was not UTF-8, converted; NULL: none yet */
  size_t turned_size;
  uint64_t number;
};

int hk_csv_wrong(const struct hk_csv_lines *lines, uint64_t line, char *error, size_t size, const char *format, ...)
{
  va_list arguments;
  const int used = snprintf(error, size, "%s:%llu: ", lines->path, (unsigned long long)line);
  if (used < 0 || (size_t)used >= size)
    return -EINVAL;
  va_start(arguments, format);
  vsnprintf(error + used, size - (size_t)used, format, arguments);
  va_end(arguments);
  for (char *p = error; *p; p++) /* text of a file must not send control characters to a terminal */
    if (iscntrl((unsigned char)*p))
      *p = '?';
  return -EINVAL;
}

/* Adds the file's name to a message of the function that reads it. Returns `status`. */
static int of_file(const struct hk_csv_lines *lines, int status, char *error, size_t size)
{
  char why[256];
  snprintf(why, sizeof why, "%s", error);
  snprintf(error, size, "%s: %s", lines->path, why);
  return status;
}

int hk_csv_lines_open(struct hk_csv_lines **out, const char *path, char *error, size_t size)
{
  struct hk_csv_lines *lines = calloc(1, sizeof *lines);
  snprintf(error, size, "out of memory");
  if (!lines)
    return -ENOMEM;
  lines->path = strcmp(path, "-") == 0 ? "stdin" : path;
  lines->capacity = BUFFER_START;
  lines->buffer = malloc(lines->capacity + 1);
  int status = lines->buffer ? hk_csv_bytes_open(&lines->bytes, path, error, size) : -ENOMEM;
  if (status < 0) {
    status = of_file(lines, status, error, size);
    hk_csv_lines_close(lines);
    return status;
  }
  *out = lines;
  return 0;
}

void hk_csv_lines_close(struct hk_csv_lines *lines)
{
  if (!lines)
    return;
  hk_csv_bytes_close(lines->bytes);
  free(lines->turned);
  free(lines->buffer);
  free(lines);
}

/* Makes room after `end`: moves the unread bytes to the front, or enlarges the buffer. */
static int csv_lines_make_room(struct hk_csv_lines *lines, char *error, size_t size)
{
  if (lines->capacity - lines->end >= 64)
    return 0;
  if (lines->begin > 0) {
    memmove(lines->buffer, lines->buffer + lines->begin, lines->end - lines->begin);
    lines->end -= lines->begin;
    lines->begin = 0;
    if (lines->capacity - lines->end >= 64)
      return 0;
  }
  if (lines->capacity >= HK_CSV_LINE_MAX) {
    lines->number++;
    return hk_csv_wrong(lines, lines->number, error, size, "the line is longer than %u bytes", HK_CSV_LINE_MAX);
  }
  char *grown = realloc(lines->buffer, 2 * lines->capacity + 1); /* one more, for the end of a last line with no newline */
  if (!grown) {
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  lines->buffer = grown;
  lines->capacity *= 2;
  return 0;
}

/* Size of the UTF-8 character at p, where `left` bytes remain; 0: not one. */
static size_t character(const unsigned char *p, size_t left)
{
  const size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;
  if (n > left || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
      (*p == 0xf4 && p[1] >= 0x90))
    return 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  return n;
}

static bool is_utf8(const char *text, size_t length)
{
  for (size_t i = 0; i < length;) {
    uint64_t eight;
    if (length - i >= sizeof eight && (memcpy(&eight, text + i, sizeof eight), (eight & 0x8080808080808080u) == 0)) {
      i += sizeof eight; /* of ASCII */
      continue;
    }
    const size_t n = character((const unsigned char *)text + i, length - i);
    if (n == 0)
      return false;
    i += n;
  }
  return true;
}

/* Converts a line of Windows-1252 to UTF-8, at most three bytes for each. Returns it, or NULL without memory. */
static char *csv_lines_turn(struct hk_csv_lines *lines, const char *line, size_t length)
{
  static const uint16_t upper[32] = { 0x20ac, 0xfffd, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
                                      0x2039, 0x0152, 0xfffd, 0x017d, 0xfffd, 0xfffd, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
                                      0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0xfffd, 0x017e, 0x0178 };
  if (3 * length + 1 > lines->turned_size) {
    char *grown = realloc(lines->turned, 3 * length + 1);
    if (!grown)
      return NULL;
    lines->turned = grown;
    lines->turned_size = 3 * length + 1;
  }
  unsigned char *to = (unsigned char *)lines->turned;
  for (size_t i = 0; i < length; i++) {
    const unsigned char byte = (unsigned char)line[i];
    const uint32_t c = byte >= 0x80 && byte < 0xa0 ? upper[byte - 0x80] : byte;
    if (c < 0x80) {
      *to++ = (unsigned char)c;
    } else if (c < 0x800) {
      *to++ = (unsigned char)(0xc0 | c >> 6);
      *to++ = (unsigned char)(0x80 | (c & 0x3f));
    } else {
      *to++ = (unsigned char)(0xe0 | c >> 12);
      *to++ = (unsigned char)(0x80 | (c >> 6 & 0x3f));
      *to++ = (unsigned char)(0x80 | (c & 0x3f));
    }
  }
  *to = 0;
  lines->latin = true;
  return lines->turned;
}

/* Makes text of the line at start..stop-1. Returns 1 and *line; 0 if it is blank; or a negative errno with a message. */
static int csv_lines_finish(struct hk_csv_lines *lines, char *start, char *stop, char **line, char *error, size_t size)
{
  if (lines->number == 1 && stop - start >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0)
    start += 3;
  const char *other = lines->number == 1 ? hk_magic_other(start, (size_t)(stop - start)) : NULL;
  if (other)
    return hk_csv_wrong(lines, lines->number, error, size, "%s", other);
  if (memchr(start, 0, (size_t)(stop - start)))
    return hk_csv_wrong(lines, lines->number, error, size, "a NUL byte: this is not text");
  while (stop > start && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t'))
    stop--;
  *stop = 0;
  if (start == stop)
    return 0;
  *line = is_utf8(start, (size_t)(stop - start)) ? start : csv_lines_turn(lines, start, (size_t)(stop - start));
  if (!*line)
    snprintf(error, size, "out of memory");
  return *line ? 1 : -ENOMEM;
}

int hk_csv_lines_next(struct hk_csv_lines *lines, char **line, char *error, size_t size)
{
  size_t searched = 0; /* bytes after begin without a newline */
  for (;;) {
    char *start = lines->buffer + lines->begin, *stop = memchr(start + searched, '\n', lines->end - lines->begin - searched);
    if (!stop && lines->end_of_file) {
      if (lines->begin == lines->end)
        return 0;
      stop = lines->buffer + lines->end++; /* the last line has no newline */
    }
    if (stop) {
      lines->begin = (size_t)(stop + 1 - lines->buffer);
      lines->number++;
      searched = 0;
      const int status = csv_lines_finish(lines, start, stop, line, error, size);
      if (status != 0)
        return status;
      continue;
    }
    searched = lines->end - lines->begin;
    const int status = csv_lines_make_room(lines, error, size);
    if (status < 0)
      return status;
    const ssize_t got = hk_csv_bytes_read(lines->bytes, lines->buffer + lines->end, lines->capacity - lines->end, error, size);
    if (got < 0)
      return of_file(lines, (int)got, error, size);
    lines->end_of_file = got == 0;
    lines->end += (size_t)got;
  }
}

int hk_csv_lines_rewind(struct hk_csv_lines *lines, char *error, size_t size)
{
  lines->begin = lines->end = 0;
  lines->number = 0;
  lines->end_of_file = false;
  const int status = hk_csv_bytes_rewind(lines->bytes, error, size);
  return status < 0 ? of_file(lines, status, error, size) : 0;
}

uint64_t hk_csv_lines_number(const struct hk_csv_lines *lines)
{
  return lines->number;
}

bool hk_csv_lines_latin(const struct hk_csv_lines *lines)
{
  return lines->latin;
}

bool hk_csv_lines_regular(const struct hk_csv_lines *lines)
{
  return hk_csv_bytes_regular(lines->bytes);
}

bool hk_csv_lines_ready(const struct hk_csv_lines *lines)
{
  return hk_csv_bytes_ready(lines->bytes) || lines->end_of_file ||
         memchr(lines->buffer + lines->begin, '\n', lines->end - lines->begin);
}

int hk_csv_lines_fd(const struct hk_csv_lines *lines)
{
  return hk_csv_bytes_fd(lines->bytes);
}

double hk_csv_lines_progress(const struct hk_csv_lines *lines)
{
  return hk_csv_bytes_progress(lines->bytes);
}
