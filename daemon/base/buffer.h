/* A growing byte buffer. If memory runs out, the buffer is marked `failed` and keeps its content; check `failed` once, before
 * using the content. Zero-initialise. Owner: the caller. */
#ifndef HK_BUFFER_H
#define HK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct hk_buffer {
  char *data;
  size_t size, capacity;
  bool failed;
};

void hk_buffer_free(struct hk_buffer *b);

/* Reserves room for n more bytes. Returns data + size, or NULL if there is no memory. */
char *hk_buffer_room(struct hk_buffer *b, size_t n);
void hk_buffer_put(struct hk_buffer *b, const char *bytes, size_t n);
void hk_buffer_print(struct hk_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Append JSON: a quoted and escaped string; a number, or null if it is not finite. digits: 9 for float32; 17 writes the fewest
 * digits that parse to the same double. */
void hk_json_string(struct hk_buffer *b, const char *text, size_t length);
void hk_json_number(struct hk_buffer *b, double x, int digits);

#endif
