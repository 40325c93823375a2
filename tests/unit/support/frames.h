/* Functions that the tests of frames and of messages share. */
#ifndef HK_TEST_FRAMES_H
#define HK_TEST_FRAMES_H

#include "proto/wire/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static inline struct hk_string text(const char *s)
{
  return hk_string(s);
}

#define assert_text(string, expected)                                                                                            \
  do {                                                                                                                           \
    assert_int_equal((string).length, strlen(expected));                                                                         \
    assert_memory_equal((string).data, expected, strlen(expected));                                                              \
  } while (0)

static inline struct hk_frame whole(const uint8_t *data, size_t size)
{
  struct hk_frame f;
  assert_int_equal(hk_frame_read(data, size, HK_FRAME_MAX, &f), HK_FRAME_WHOLE);
  assert_int_equal(hk_frame_size(&f), size);
  return f;
}

#endif
