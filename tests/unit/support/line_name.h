/* The name of a point of a line. */
#ifndef HK_TESTS_LINE_NAME_H
#define HK_TESTS_LINE_NAME_H

#include "proto/line/line.h"

/* As hk_line_join, of point i. */
static inline const char *line_name(const struct hk_line *l, uint32_t i, char buffer[HK_NAME_MAX], uint32_t *length)
{
  return hk_line_join(l->key, l->key_length, l->points[i].field, l->points[i].field_length, buffer, length);
}

#endif
