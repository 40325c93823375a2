#include "daemon/server/question.h"

#include "daemon/base/glob.h"
#include "proto/wire/message.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCORES_MOST 10000.0

static const char *const kinds[] = { "sensors", "groups", "lines" };

static void question_member(struct hk_buffer *out, const char *name, const char *value)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_string(out, value, strlen(value));
}

void hk_question_write_look(struct hk_buffer *out, const char *name, uint32_t scores)
{
  hk_buffer_print(out, "{\"ask\":\"sensor\",\"scores\":%" PRIu32, scores);
  question_member(out, "name", name);
  hk_buffer_put(out, "}", 1);
}

void hk_question_write_names(struct hk_buffer *out, uint32_t from)
{
  hk_buffer_print(out, "{\"ask\":\"names\",\"from\":%" PRIu32 "}", from);
}

void hk_question_write_progress(struct hk_buffer *out, uint32_t silence)
{
  hk_buffer_print(out, "{\"ask\":\"progress\",\"silence\":%" PRIu32 "}", silence);
}

void hk_question_write_list(struct hk_buffer *out, const struct hk_web_sensors *s)
{
  hk_buffer_print(out, "{\"ask\":\"%s\",\"limit\":%" PRIu32 ",\"line\":%" PRIu32, kinds[s->lines ? 2 : s->groups], s->limit,
                  s->line);
  question_member(out, "glob", s->glob);
  question_member(out, "channel", s->channel);
  question_member(out, "state", s->state);
  question_member(out, "alert", s->alert);
  question_member(out, "sort", s->sort);
  question_member(out, "after", s->after);
  hk_buffer_put(out, "}", 1);
}

/* Copies a member that is a string, "" if it is missing. False: it is something else, or has no room. */
static bool question_text(const cJSON *json, const char *name, char *out, size_t size)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
  const char *text = member ? cJSON_GetStringValue(member) : "";
  return text && (size_t)snprintf(out, size, "%s", text) < size;
}

/* A whole number from 0 to most; 0 if it is missing. */
static bool question_number(const cJSON *json, const char *name, double most, uint32_t *out)
{
  const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, name);
  const double value = member ? cJSON_GetNumberValue(member) : 0;
  *out = value >= 0 && value <= most ? (uint32_t)value : 0;
  return value >= 0 && value <= most;
}

static bool question_list(const cJSON *json, const char *what, struct hk_web_sensors *s)
{
  char glob[HK_GLOB_MAX + 1];
  s->rows = true;
  s->lines = strcmp(what, kinds[2]) == 0;
  s->groups = s->lines || strcmp(what, kinds[1]) == 0;
  const bool read =
      (s->groups || strcmp(what, kinds[0]) == 0) && question_text(json, "glob", glob, sizeof glob) &&
      question_number(json, "limit", HK_SENSORS_MAX, &s->limit) && s->limit > 0 &&
      question_number(json, "line", UINT32_MAX - 1, &s->line) && question_text(json, "channel", s->channel, sizeof s->channel) &&
      question_text(json, "state", s->state, sizeof s->state) && question_text(json, "alert", s->alert, sizeof s->alert) &&
      question_text(json, "sort", s->sort, sizeof s->sort) && question_text(json, "after", s->after, sizeof s->after);
  s->glob = read ? strdup(glob) : NULL;
  return s->glob != NULL;
}

bool hk_question_read(const char *text, size_t size, struct hk_question *out)
{
  cJSON *json = cJSON_ParseWithLength(text, size);
  const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "ask"));
  *out = (struct hk_question){ 0 };
  out->names = what && strcmp(what, "names") == 0;
  out->progress = what && strcmp(what, "progress") == 0;
  const bool read = !what                         ? false
                    : out->names                  ? question_number(json, "from", UINT32_MAX - 1, &out->from)
                    : out->progress               ? question_number(json, "silence", UINT32_MAX - 1, &out->silence)
                    : strcmp(what, "sensor") == 0 ? question_text(json, "name", out->name, sizeof out->name) && out->name[0] &&
                                                        question_number(json, "scores", SCORES_MOST, &out->scores)
                                                  : question_list(json, what, &out->sensors);
  cJSON_Delete(json);
  return read;
}

void hk_question_free(struct hk_question *q)
{
  free((char *)(uintptr_t)q->sensors.glob);
}
