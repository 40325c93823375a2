/* Keys and states of fields that are refused, and fields that must be equal: for the tests of each operator. */
#ifndef HK_TESTS_FIELD_H
#define HK_TESTS_FIELD_H

#include "cpu/field/field.h"
#include "cpu/field/state.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The keys are refused, and the reason contains `says`. */
static inline void field_refuses(const char *keys, const char *says)
{
  struct hk_field_rule rule;
  char error[512];
  assert_int_equal(hk_field_parse(keys, &rule, error, sizeof error), -EINVAL);
  if (!strstr(error, says))
    fail_msg("%s: %s", keys, error);
}

/* A state with any byte damaged is refused, or can be written again. Restores the bytes. */
static inline void field_reads_damaged(uint8_t *bytes, size_t size)
{
  struct hk_field *no;
  for (size_t at = 0; at < size; at++) {
    bytes[at] ^= 0x55;
    if (hk_field_read(&no, NULL, bytes, size) == 0)
      hk_field_free(no);
    bytes[at] ^= 0x55;
  }
}

/* Two fields have the same state, bit for bit. */
static inline void field_same_states(const struct hk_field *a, const struct hk_field *b)
{
  const size_t size = hk_field_state_size(a);
  void *one = malloc(size), *other = malloc(size);
  assert_true(one && other && hk_field_state_size(b) == size);
  hk_field_write(a, one);
  hk_field_write(b, other);
  assert_memory_equal(one, other, size);
  free(one);
  free(other);
}

#endif
