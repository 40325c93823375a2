#include "daemon/config/section_name.h"

#include <stdio.h>
#include <string.h>

bool hk_config_one_more(struct hk_config_reading *r, struct hk_config_sections s, const char *name, char out[HK_CONFIG_NAME_MAX])
{
  bool taken = false;
  for (uint32_t i = 0; i < s.n; i++)
    taken |= strcmp(s.names + i * s.apart, name) == 0;
  if (name[0] == 0 || strlen(name) >= HK_CONFIG_NAME_MAX)
    hk_config_complain(r, r->line, "[%s NAME]: a name of 1 to %d bytes is needed", s.kind, HK_CONFIG_NAME_MAX - 1);
  else if (taken)
    hk_config_complain(r, r->line, "there is a [%s %s] already", s.kind, name);
  else if (s.n == s.most)
    hk_config_complain(r, r->line, "more than %u %s", s.most, s.plural);
  else
    return snprintf(out, HK_CONFIG_NAME_MAX, "%s", name) > 0;
  return false;
}
