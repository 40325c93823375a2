#include "daemon/config/section_keys.h"

#include "cpu/duration.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const hk_yes_words[] = { "no", "yes", NULL };

int hk_word_find(const char *const *words, const char *word, uint32_t *out)
{
  for (uint32_t i = 0; words[i]; i++)
    if (words[i][0] && strcmp(words[i], word) == 0) {
      *out = i;
      return 0;
    }
  return -EINVAL;
}

static const char *take_text(char *out, size_t room, const char *value, const char *length_wrong)
{
  for (const char *p = value; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      return "it holds a control character";
  if (value[0] == 0 || strlen(value) >= room)
    return length_wrong;
  memset(out, 0, room);
  memcpy(out, value, strlen(value));
  return NULL;
}

static bool section_keys_take_words(const struct hk_section_key *key, const char *value, uint32_t *out)
{
  char text[HK_SECTION_TEXT], *rest = text;
  uint32_t word;
  *out = 0;
  if ((size_t)snprintf(text, sizeof text, "%s", value) >= sizeof text)
    return false;
  for (char *one = strtok_r(text, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest)) {
    if (hk_word_find(key->words, one, &word) != 0)
      return false;
    *out |= 1u << word;
  }
  return *out != 0;
}

static bool section_keys_take_number(const struct hk_section_key *key, const char *value, double *out)
{
  char *end;
  *out = strtod(value, &end);
  return end != value && *end == 0 && *out >= key->min && *out <= key->max;
}

static bool take_duration(const struct hk_section_key *key, const char *value, int64_t *out)
{
  *out = 0;
  if (key->off && strcmp(value, "off") == 0)
    return true;
  return hk_duration_parse(value, out) == 0 && (double)*out >= key->min && (double)*out <= key->max;
}

/* Whether the value is valid for the key; sets it then. The fields are aligned, being members of the rule. */
static bool section_keys_take(const struct hk_section_key *key, void *field, const char *value)
{
  uint32_t word;
  double number;
  int64_t time;
  bool good = false;
  switch (key->kind) {
  case HK_TAKES_WORD:
  case HK_TAKES_FLAG:
  case HK_TAKES_WORDS:
    good = key->kind == HK_TAKES_WORDS ? section_keys_take_words(key, value, &word) : hk_word_find(key->words, value, &word) == 0;
    if (good && key->kind == HK_TAKES_FLAG)
      *(bool *)field = word == 1;
    else if (good)
      memcpy(field, &word, sizeof word);
    return good;
  case HK_TAKES_NUMBER:
  case HK_TAKES_WHOLE:
    good = section_keys_take_number(key, value, &number) && (key->kind == HK_TAKES_NUMBER || number == (uint32_t)number);
    word = good && key->kind == HK_TAKES_WHOLE ? (uint32_t)number : 0;
    if (good)
      memcpy(field, key->kind == HK_TAKES_NUMBER ? (void *)&number : (void *)&word,
             key->kind == HK_TAKES_NUMBER ? sizeof number : sizeof word);
    return good;
  case HK_TAKES_DURATION:
    good = take_duration(key, value, &time);
    if (good)
      memcpy(field, &time, sizeof time);
    return good;
  default:
    return false;
  }
}

int hk_section_no_key(const char *section, const char *name, const char *const *names, size_t n, size_t apart, char *error,
                      size_t size)
{
  const char *meant = hk_suggest(name, names, n, apart);
  if (meant)
    snprintf(error, size, "[%s] has no key `%.64s`; did you mean %s? hankeld.conf(5) lists them", section, name, meant);
  else
    snprintf(error, size, "[%s] has no key `%.64s`; hankeld.conf(5) lists them", section, name);
  return -EINVAL;
}

static const char one_of[] = "not one of "; /* words follow */

int hk_section_key_set(const char *section, const struct hk_section_key *keys, size_t n, void *rule, const char *name,
                       const char *value, char *error, size_t size)
{
  const struct hk_section_key *key = keys;
  while (key < keys + n && strcmp(key->name, name) != 0)
    key++;
  if (key == keys + n)
    return hk_section_no_key(section, name, &keys[0].name, n, sizeof *keys, error, size);
  void *field = (char *)rule + key->at;
  const char *wrong = NULL;
  if (key->kind == HK_TAKES_TEXT)
    wrong = take_text(field, HK_SECTION_TEXT, value, "1 to 255 bytes are needed");
  else if (key->kind == HK_TAKES_GLOB)
    wrong = take_text(field, HK_SECTION_GLOB, value, "a glob of 1 to 512 bytes; * matches every sensor");
  else if (key->kind == HK_TAKES_OTHER)
    wrong = key->take(field, value);
  else if (!section_keys_take(key, field, value))
    wrong = key->wrong;
  if (wrong)
    snprintf(error, size, "%s = %.64s: %s", name, value, wrong);
  if (wrong && strncmp(wrong, one_of, strlen(one_of)) == 0)
    hk_suggest_of(value, wrong + strlen(one_of), error, size);
  return wrong ? -EINVAL : 0;
}
