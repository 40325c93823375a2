/* Sorts the keys of a section into those for all its algorithms and those for one; each algorithm then gets the detector that the
 * keys that apply to it define. */
#include "cpu/detectors.h"
#include "cpu/detector_keys.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 1024

static int detectors_fail(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int detectors_fail(char *error, size_t size, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (size > 0)
    vsnprintf(error, size, format, arguments);
  va_end(arguments);
  return -EINVAL;
}

/* Removes leading and trailing blanks. */
static char *trim(char *s)
{
  while (*s == ' ' || *s == '\t')
    s++;
  char *end = s + strlen(s);
  while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
    *--end = 0;
  return s;
}

static int set_algorithms(struct hk_detectors_draft *draft, const char *value, char *error, size_t size)
{
  char copy[TEXT_MAX], *rest = copy, *item;
  if (draft->n > 0)
    return detectors_fail(error, size, "algorithm: given twice");
  if (strlen(value) >= sizeof copy)
    return detectors_fail(error, size, "algorithm: longer than %zu bytes", sizeof copy - 1);
  strcpy(copy, value);
  while ((item = strsep(&rest, ","))) {
    struct hk_detector_draft one = HK_DETECTOR_DRAFT_NULL;
    item = trim(item);
    const int status = hk_detector_set(&one, "algorithm", item, error, size);
    if (status < 0)
      return status;
    for (uint32_t i = 0; i < draft->n; i++)
      if (draft->algorithm[i] == one.detector.algorithm)
        return detectors_fail(error, size, "algorithm = %s: %s is there twice", value, item);
    draft->algorithm[draft->n++] = one.detector.algorithm; /* each once: there is room */
  }
  return 0;
}

int hk_detectors_set(struct hk_detectors_draft *draft, const char *key, const char *value, char *error, size_t size)
{
  char name[16];
  const char *dot = strchr(key, '.');
  if (strcmp(key, "algorithm") == 0)
    return set_algorithms(draft, value, error, size);
  if (!dot)
    return hk_detector_set(&draft->shared, key, value, error, size);
  snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
  const int algorithm = hk_algorithm_find(name);
  if (algorithm < 0 || strcmp(dot + 1, "algorithm") == 0)
    return detectors_fail(error, size, "%.64s: no such key of a detector", key);
  char why[192];
  const int status = hk_detector_set(&draft->own[algorithm], dot + 1, value, why, sizeof why);
  return status < 0 ? detectors_fail(error, size, "%s: %s", name, why) : 0;
}

static bool detectors_has(const struct hk_detectors_draft *draft, uint32_t algorithm)
{
  for (uint32_t i = 0; i < draft->n; i++)
    if (draft->algorithm[i] == algorithm)
      return true;
  return draft->n == 0 && algorithm == HK_ALGORITHM_IKA;
}

/* Refuses keys that apply to none of the algorithms. */
static int check_used(const struct hk_detectors_draft *draft, char *error, size_t size)
{
  uint64_t strange = draft->shared.given;
  for (uint32_t a = 0; a < HK_ALGORITHMS; a++) {
    if (detectors_has(draft, a))
      strange &= hk_detector_strange(&draft->shared, (uint8_t)a);
    else if (draft->own[a].given)
      return detectors_fail(error, size, "%s.%s: algorithm = %s is not among those of this detector",
                            hk_algorithm_name((uint8_t)a), hk_detector_key(draft->own[a].given), hk_algorithm_name((uint8_t)a));
  }
  if (strange && draft->n > 1)
    return detectors_fail(error, size, "%s: has no effect on any of the algorithms, or not with this value; remove it",
                          hk_detector_key(strange));
  return 0;
}

int hk_detectors_finish(const struct hk_detectors_draft *draft, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size)
{
  int status = check_used(draft, error, size);
  const uint32_t n = draft->n > 0 ? draft->n : 1;
  for (uint32_t i = 0; i < n && status == 0; i++) {
    struct hk_detector_draft one = HK_DETECTOR_DRAFT_NULL;
    const uint8_t algorithm = draft->n > 0 ? draft->algorithm[i] : HK_ALGORITHM_IKA;
    const uint64_t strange = n > 1 ? hk_detector_strange(&draft->shared, algorithm) : 0;
    char why[192];
    status = hk_detector_set(&one, "algorithm", hk_algorithm_name(algorithm), error, size);
    hk_detector_take(&one, &draft->shared, draft->shared.given & ~strange);
    hk_detector_take(&one, &draft->own[algorithm], draft->own[algorithm].given);
    if (status == 0 && hk_detector_finish(&one, &out[i], why, sizeof why) != 0)
      status = n > 1 ? detectors_fail(error, size, "%s: %s", hk_algorithm_name(algorithm), why)
                     : detectors_fail(error, size, "%s", why);
  }
  return status < 0 ? status : (int)n;
}

int hk_detectors_parse(const char *text, struct hk_detector out[HK_ALGORITHMS], char *error, size_t size)
{
  struct hk_detectors_draft draft = { 0 };
  char copy[TEXT_MAX], list[TEXT_MAX], *rest = copy, *item;
  if (strlen(text) >= sizeof copy)
    return detectors_fail(error, size, "detector: longer than %zu bytes", sizeof copy - 1);
  strcpy(copy, text);
  if (*trim(copy) == 0)
    return hk_detectors_finish(&draft, out, error, size);
  while ((item = strsep(&rest, ","))) {
    char *equals = strchr(item, '=');
    if (!equals)
      return detectors_fail(error, size, "%s: not key=value", trim(item));
    *equals = 0;
    item = trim(item);
    size_t length = (size_t)snprintf(list, sizeof list, "%s", trim(equals + 1));
    while (strcmp(item, "algorithm") == 0 && rest && !memchr(rest, '=', strcspn(rest, ","))) /* the list continues */
      length += (size_t)snprintf(list + length, sizeof list - length, ",%s", trim(strsep(&rest, ",")));
    const int status = hk_detectors_set(&draft, item, list, error, size);
    if (status < 0)
      return status;
  }
  return hk_detectors_finish(&draft, out, error, size);
}

int hk_detector_parse(const char *text, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector all[HK_ALGORITHMS];
  const int n = hk_detectors_parse(text, all, error, size);
  if (n > 1)
    return detectors_fail(error, size, "algorithm: only one is allowed here");
  if (n == 1)
    *out = all[0];
  return n < 0 ? n : 0;
}
