#include "daemon/bridge/mqtt_payload.h"

#include "daemon/base/timestamp.h"
#include "proto/line/number.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* State of the traversal. */
struct walk {
  const char *wanted; /* paths; "": all */
  hk_mqtt_take *take; /* NULL: values are only counted */
  void *arg;
  uint32_t n;    /* number of values */
  bool too_many; /* or too long, or too deep */
  char path[HK_MQTT_PATH_MAX];
};

/* Whether a path matches a pattern of length bytes, in which * matches any key. */
static bool is_path(const char *pattern, size_t length, const char *path)
{
  const char *end = pattern + length;
  for (;;) {
    const char *dot = memchr(pattern, '.', (size_t)(end - pattern));
    const size_t p = (size_t)((dot ? dot : end) - pattern), q = strcspn(path, ".");
    if (!(p == 1 && pattern[0] == '*') && (p != q || memcmp(pattern, path, p) != 0))
      return false;
    if (!dot || !path[q])
      return !dot && !path[q];
    pattern = dot + 1;
    path += q + 1;
  }
}

static bool is_wanted(const char *list, const char *path)
{
  while (*list) {
    size_t length = strcspn(list, ",");
    const char *next = list + length + (list[length] == ',');
    while (length > 0 && *list == ' ') {
      list++;
      length--;
    }
    while (length > 0 && list[length - 1] == ' ')
      length--;
    if (is_path(list, length, path))
      return true;
    list = next;
  }
  return false;
}

static void take_value(struct walk *w, double value)
{
  if (!isfinite(value) || (w->wanted[0] && !is_wanted(w->wanted, w->path)))
    return;
  if (w->n == HK_MQTT_VALUES_MAX) {
    w->too_many = true;
    return;
  }
  w->n++;
  if (w->take)
    w->take(w->arg, w->path, value);
}

/* text: without surrounding blanks. */
static bool plain(const char *text, size_t size, double *value)
{
  static const struct {
    const char *word;
    double value;
  } words[] = { { "true", 1 }, { "false", 0 }, { "on", 1 }, { "off", 0 } };
  size_t used;
  if (hk_number_parse(text, size, value, &used) == 0 && used == size)
    return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i].word) == size && strncasecmp(words[i].word, text, size) == 0) {
      *value = words[i].value;
      return true;
    }
  }
  return false;
}

/* Appends a key, or an index if there is none, to the path of length bytes. Returns the new length; SIZE_MAX: it does not fit. It
 * does not use printf, which took half of the time of a JSON message. */
static size_t add_key(struct walk *w, size_t length, const char *key, uint32_t place)
{
  char number[16];
  if (!key)
    snprintf(number, sizeof number, "%" PRIu32, place);
  const char *text = key ? key : number;
  const size_t n = strlen(text), dot = length > 0;
  if (length + dot + n >= sizeof w->path)
    return SIZE_MAX;
  memcpy(w->path + length, ".", dot);
  memcpy(w->path + length + dot, text, n + 1);
  return length + dot + n;
}

static void walk(struct walk *w, const cJSON *json, size_t length, uint32_t depth)
{
  const cJSON *child;
  uint32_t place = 0;
  double value;
  if (cJSON_IsNumber(json) || cJSON_IsBool(json)) {
    take_value(w, cJSON_IsNumber(json) ? json->valuedouble : cJSON_IsTrue(json));
    return;
  }
  if (cJSON_IsString(json)) { /* may be a name or a serial number, unless it is requested */
    if (w->wanted[0] && plain(json->valuestring, strlen(json->valuestring), &value))
      take_value(w, value);
    return;
  }
  cJSON_ArrayForEach(child, json)
  {
    const size_t longer = add_key(w, length, child->string, place++);
    if (longer == SIZE_MAX || depth == HK_MQTT_DEPTH)
      w->too_many = true;
    else
      walk(w, child, longer, depth + 1);
  }
  w->path[length] = 0;
}

/* The member at a path; NULL: none. */
static const cJSON *mqtt_payload_find(const cJSON *json, const char *path)
{
  char key[HK_MQTT_PATH_MAX];
  while (json && *path) {
    const size_t length = strcspn(path, ".");
    if (length >= sizeof key)
      return NULL;
    memcpy(key, path, length);
    key[length] = 0;
    json = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, atoi(key)) : cJSON_GetObjectItemCaseSensitive(json, key);
    path += length + (path[length] == '.');
  }
  return json;
}

/* Converts a number since 1970 to ns. False: not a time. */
static bool time_of(double number, int64_t *time)
{
  const double scale = number < 1e11 ? 1e9 : number < 1e14 ? 1e6 : number < 1e17 ? 1e3 : 1;
  if (!(number >= 0) || number * scale >= 9.2e18) /* the range of int64_t: to the year 2261 */
    return false;
  /* Converts seconds and fraction separately: a product in double would be off by some hundred ns. */
  const double whole = scale == 1e9 ? floor(number) : number;
  *time = (int64_t)whole * (int64_t)scale + (int64_t)((number - whole) * scale);
  return true;
}

/* Text that is a date, or a number as above. */
static bool read_time(const char *text, int64_t *time)
{
  return (hk_timestamp_is_date(text) ? hk_timestamp_parse_date(text, time)
                                     : hk_timestamp_parse_epoch(text, hk_timestamp_guess_unit(text), time)) == 0;
}

static const char *read_json(const struct hk_mqtt_wanted *wanted, const cJSON *json, bool *timed, int64_t *time,
                             hk_mqtt_take *take, void *arg)
{
  struct walk w = { .wanted = wanted->values };
  if (wanted->time[0] && (cJSON_IsObject(json) || cJSON_IsArray(json))) {
    const cJSON *at = mqtt_payload_find(json, wanted->time);
    *timed = cJSON_IsNumber(at) ? time_of(at->valuedouble, time) : cJSON_IsString(at) && read_time(at->valuestring, time);
    if (!*timed)
      return at ? "the value of the key `time` is not a time" : "it does not have the key that `time` names";
  }
  walk(&w, json, 0, 0);
  if (w.too_many)
    return "it has too many values, or keys that are too long or too deep";
  if (w.n == 0)
    return wanted->values[0] ? "none of the keys in `values` has a number" : "it contains no number";
  if (wanted->only_timed && !*timed)
    return NULL;
  w = (struct walk){ .wanted = wanted->values, .take = take, .arg = arg };
  walk(&w, json, 0, 0);
  return NULL;
}

const char *hk_mqtt_payload_read(const struct hk_mqtt_wanted *wanted, const char *data, size_t size, bool *timed, int64_t *time,
                                 hk_mqtt_take *take, void *arg)
{
  double value;
  const char *end;
  *timed = false;
  while (size > 0 && strchr(" \t\r\n", data[0])) {
    data++;
    size--;
  }
  while (size > 0 && strchr(" \t\r\n", data[size - 1])) /* also a 0 that ended a sender's string */
    size--;
  if (size == 0)
    return "it is empty";
  if (plain(data, size, &value)) {
    if (!wanted->only_timed)
      take(arg, "", value);
    return NULL;
  }
  if (data[0] != '{' && data[0] != '[')
    return "it is not a number, true, false, on, off or JSON";
  cJSON *json = cJSON_ParseWithLengthOpts(data, size, &end, false);
  const char *wrong =
      !json || end != data + size ? "it is not complete and valid JSON" : read_json(wanted, json, timed, time, take, arg);
  cJSON_Delete(json);
  return wrong;
}
