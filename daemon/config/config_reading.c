#include "daemon/config/config_reading.h"

#include <stdarg.h>
#include <string.h>

void hk_config_complain(struct hk_config_reading *r, uint32_t line, const char *format, ...)
{
  char message[768];
  if (r->faults >= HK_CONFIG_FAULTS_TOLD) { /* perhaps it is no configuration at all */
    if (r->faults++ == HK_CONFIG_FAULTS_TOLD) {
      snprintf(message, sizeof message, "%.255s: more faults than these %u", r->name, HK_CONFIG_FAULTS_TOLD);
      r->fault(r->arg, message);
    }
    return;
  }
  const int at = line > 0 ? snprintf(message, sizeof message, "%.255s:%u: ", r->name, line)
                          : snprintf(message, sizeof message, "%.255s: ", r->name);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message + at, sizeof message - (size_t)at, format, arguments);
  va_end(arguments);
  r->faults++;
  r->fault(r->arg, message);
}

bool hk_config_seen(const struct hk_config_reading *r, const char *name)
{
  for (uint32_t i = 0; i < r->n_seen; i++)
    if (strcmp(r->seen[i], name) == 0)
      return true;
  return false;
}
