/* What is known of the members of a field, in numbers. */
#ifndef HK_FIELD_COUNT_H
#define HK_FIELD_COUNT_H

#include "cpu/field/field.h"

/* Numbers of members by what is known of them. */
struct hk_field_count {
  uint32_t settled;   /* with a mean and a spread */
  uint32_t explained; /* with a prediction; of a model: checks that had output; of a focus: with a value in the last row; of a
                         filter, as settled: with enough samples */
  uint64_t refused;   /* refused refits of all members */
};
struct hk_field_count hk_field_count(const struct hk_field *field);

#endif
