/* See rule_keys.h. */
#include "cpu/rule_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_rule_whole(uint32_t *out, uint32_t least, uint32_t most, const char *key, const char *value, char *error, size_t size)
{
  char *end;
  errno = 0;
  const unsigned long number = strtoul(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno != 0 || number < least || number > most) {
    snprintf(error, size, "%s = %s: not a whole number from %u to %u", key, value, least, most);
    return -EINVAL;
  }
  *out = (uint32_t)number;
  return 0;
}

int hk_rule_real(double *out, double least, double most, const char *key, const char *value, char *error, size_t size)
{
  char *end;
  const double number = strtod(value, &end);
  if (end == value || *end || !(number >= least && number <= most)) {
    snprintf(error, size, "%s = %s: not a number from %g to %g", key, value, least, most);
    return -EINVAL;
  }
  *out = number;
  return 0;
}

/* Removes leading and trailing blanks. */
static char *rule_trimmed(char *text)
{
  while (*text == ' ')
    text++;
  for (size_t n = strlen(text); n > 0 && text[n - 1] == ' ';)
    text[--n] = 0;
  return text;
}

int hk_rule_parse(const char *text, hk_rule_set *set, void *rule, char *error, size_t size)
{
  char copy[HK_RULE_TEXT_MAX + 1], *rest = copy, *token;
  if (strlen(text) >= sizeof copy) {
    snprintf(error, size, "the keys are longer than %zu bytes", sizeof copy - 1);
    return -EINVAL;
  }
  memcpy(copy, text, strlen(text) + 1);
  while (*text && (token = strsep(&rest, ","))) {
    char *value = strchr(token, '=');
    if (!value) {
      snprintf(error, size, "%s: not key=value", token);
      return -EINVAL;
    }
    *value++ = 0;
    if (set(rule, rule_trimmed(token), rule_trimmed(value), error, size) < 0)
      return -EINVAL;
  }
  return 0;
}
