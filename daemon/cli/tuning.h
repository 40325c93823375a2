/* Combinations of the values that --tune searches. Pure functions. */
#ifndef HK_TUNING_H
#define HK_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_TUNED_MAX 8

/* What --tune was given: texts KEY=VALUE|VALUE... */
struct hk_tuning {
  const char *tuned[HK_TUNED_MAX];
  uint32_t n;
};

/* Writes keys, followed by combination `number` of the tuned values. False: there are fewer combinations, or the text is too
 * long. */
bool hk_tuning_combine(const struct hk_tuning *tuning, const char *keys, uint32_t number, char *text, size_t size);

#endif
