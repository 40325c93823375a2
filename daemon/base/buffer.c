#include "daemon/base/buffer.h"
#include "daemon/base/decimal.h"

#include "proto/wire/name.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hk_buffer_free(struct hk_buffer *b)
{
  free(b->data);
  *b = (struct hk_buffer){ 0 };
}

char *hk_buffer_room(struct hk_buffer *b, size_t n)
{
  if (b->failed)
    return NULL;
  if (!b->data || n > b->capacity - b->size) {
    size_t capacity = b->capacity ? 2 * b->capacity : 1024;
    if (capacity - b->size < n)
      capacity = b->size + n;
    char *data = realloc(b->data, capacity);
    if (!data) {
      b->failed = true;
      return NULL;
    }
    b->data = data;
    b->capacity = capacity;
  }
  return b->data + b->size;
}

void hk_buffer_put(struct hk_buffer *b, const char *bytes, size_t n)
{
  char *room = hk_buffer_room(b, n);
  if (room && n > 0) {
    memcpy(room, bytes, n);
    b->size += n;
  }
}

void hk_buffer_print(struct hk_buffer *b, const char *format, ...)
{
  va_list arguments;
  const size_t left = b->failed ? 0 : b->capacity - b->size; /* most often it is enough, and is written once */
  va_start(arguments, format);
  const int n = vsnprintf(left > 0 ? b->data + b->size : NULL, left, format, arguments);
  va_end(arguments);
  if (n >= 0 && (size_t)n < left) {
    b->size += (size_t)n;
    return;
  }
  char *room = n < 0 ? NULL : hk_buffer_room(b, (size_t)n + 1);
  if (!room)
    return;
  va_start(arguments, format);
  vsnprintf(room, (size_t)n + 1, format, arguments);
  va_end(arguments);
  b->size += (size_t)n;
}

void hk_json_string(struct hk_buffer *b, const char *text, size_t length)
{
  static const char digits[] = "0123456789abcdef";
  char *room = hk_buffer_room(b, 6 * length + 2);
  if (!room)
    return;
  char *at = room;
  *at++ = '"';
  for (size_t i = 0; i < length;) {
    const uint8_t c = (uint8_t)text[i];
    uint32_t code;
    const size_t n = hk_text_character(text + i, length - i, &code);
    if (c == '"' || c == '\\') {
      *at++ = '\\';
      *at++ = (char)c;
    } else if (code != HK_SHOWN_AS_IT_IS) { /* all below U+10000 */
      memcpy(at, "\\u", 2);
      for (int digit = 0; digit < 4; digit++)
        at[2 + digit] = digits[code >> (12 - 4 * digit) & 15];
      at += 6;
    } else {
      memcpy(at, text + i, n);
      at += n;
    }
    i += n;
  }
  *at++ = '"';
  b->size += (size_t)(at - room);
}

void hk_json_number(struct hk_buffer *b, double x, int digits)
{
  char text[32];
  if (!isfinite(x)) {
    hk_buffer_put(b, "null", 4);
    return;
  }
  int n = digits > 15 ? hk_decimal_short(text, x) : 0;
  if (n > 0) {
    hk_buffer_put(b, text, (size_t)n);
    return;
  }
  n = snprintf(text, sizeof text, "%.*g", digits < 15 ? digits : 15, x);
  if (digits > 15 && strtod(text, NULL) != x)
    n = snprintf(text, sizeof text, "%.17g", x);
  hk_buffer_put(b, text, (size_t)n);
}
