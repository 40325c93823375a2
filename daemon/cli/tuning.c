/* Combinations of tuned values: see tuning.h. */
#include "daemon/cli/tuning.h"

#include <stdio.h>
#include <string.h>

bool hk_tuning_combine(const struct hk_tuning *tuning, const char *keys, uint32_t number, char *text, size_t size)
{
  size_t length = (size_t)snprintf(text, size, "%s", keys);
  for (uint32_t i = 0; i < tuning->n; i++) {
    const char *tuned = tuning->tuned[i], *value = strchr(tuned, '=') + 1;
    const int key = (int)(value - tuned);
    uint32_t values = 1, which;
    for (const char *at = value; *at; at++)
      values += *at == '|';
    which = number % values;
    number /= values;
    while (which-- > 0)
      value = strchr(value, '|') + 1;
    if (length < size)
      length += (size_t)snprintf(text + length, size - length, "%s%.*s%.*s", length > 0 ? "," : "", key, tuned,
                                 (int)strcspn(value, "|"), value);
  }
  return number == 0 && length < size;
}
