/* A buffer of bytes that grows. When there is no memory it is marked `failed` and keeps what it has; whoever uses the content
 * looks at that once. Zero-initialise. Owner: the caller. */
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

/* Room for n more bytes at data + size, or NULL. */
char *hk_buffer_room(struct hk_buffer *b, size_t n);
void hk_buffer_put(struct hk_buffer *b, const char *bytes, size_t n);
void hk_buffer_print(struct hk_buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* JSON: a string with its quotation marks, whatever it holds; a number, null when it is not finite (digits: 9 for what is
 * float32; 17 gives as many as are needed to read the same double back). */
void hk_json_string(struct hk_buffer *b, const char *text, size_t length);
void hk_json_number(struct hk_buffer *b, double x, int digits);

#endif
