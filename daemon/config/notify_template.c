#include "daemon/config/notify_template.h"

#include "daemon/base/template.h"
#include "proto/wire/secret_file.h"

#include <stdio.h>
#include <string.h>

#define NAMES 64

const char *const hk_notify_message_names[] = { "version", "key",    "receiver", "events", "page", "group", "headline", "several",
                                                "sensors", "firing", "resolved", "link",   "more", "again", "alerts",   NULL };
const char *const hk_notify_alert_names[] = { "key",   "status",  "over",     "again",    "id",     "sensor", "position",
                                              "time",  "since",   "channel",  "what",     "level",  "before", "severity",
                                              "after", "score",   "text",     "how_sure", "margin", "number", "test",
                                              "link",  "novelty", "novelty.", "limit",    "limit.", NULL };
const char *const hk_notify_incident_names[] = { "key",   "status", "over",    "again", "incident", "kind", "position",
                                                 "time",  "since",  "rank",    "level", "sensors",  "text", "severity",
                                                 "about", "about.", "section", "link",  NULL };

static void notify_template_gather(const char *names[NAMES], bool alerts, bool incidents)
{
  const char *const *lists[] = { hk_notify_message_names, alerts ? hk_notify_alert_names : NULL,
                                 incidents ? hk_notify_incident_names : NULL };
  size_t n = 0;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    for (const char *const *name = lists[i]; name && *name && n + 1 < NAMES; name++)
      names[n++] = *name;
  names[n] = NULL;
}

static bool notify_template_check(const struct hk_notify_template *t, bool alerts, bool incidents, char *error, size_t size)
{
  const char *names[NAMES];
  struct hk_template_fault fault;
  notify_template_gather(names, alerts, incidents);
  if (hk_template_check(t->text, names, &fault) == 0)
    return true;
  if (t->file[0])
    snprintf(error, size, "template_file = %s: line %u, column %u: %s", t->file, fault.line, fault.column, fault.why);
  else
    snprintf(error, size, "template: line %u, column %u: %s", fault.line, fault.column, fault.why);
  return false;
}

bool hk_notify_template_take(struct hk_notify_template *t, const char *value, char *error, size_t size)
{
  *t = (struct hk_notify_template){ 0 };
  size_t used = 0;
  for (const char *p = value; *p && used + 1 < sizeof t->text; p++) {
    const bool escaped = p[0] == '\\' && (p[1] == 'n' || p[1] == '\\');
    p += escaped;
    t->text[used++] = *p;
    if (escaped && *p == 'n')
      t->text[used - 1] = '\n';
  }
  if (used == 0) {
    snprintf(error, size, "template: there is nothing in it");
    return false;
  }
  return notify_template_check(t, true, true, error, size);
}

bool hk_notify_template_read(struct hk_notify_template *t, const char *path, char *error, size_t size)
{
  char *data = NULL, why[HK_SECRET_WHY];
  size_t bytes = 0;
  *t = (struct hk_notify_template){ 0 };
  if (strlen(path) >= sizeof t->file)
    snprintf(error, size, "template_file: its name is longer than %zu bytes", sizeof t->file - 1);
  else if (hk_secret_read(path, sizeof t->text - 1, HK_SECRET_FILE, &data, &bytes, why) != 0)
    snprintf(error, size, "template_file = %s: %s", path, why);
  else if (bytes == 0 || memchr(data, 0, bytes))
    snprintf(error, size, "template_file = %s: %s", path, bytes == 0 ? "there is nothing in it" : "a NUL byte: this is not text");
  else {
    memcpy(t->text, data, bytes);
    memcpy(t->file, path, strlen(path));
  }
  hk_secret_free(data, bytes);
  return t->text[0] && notify_template_check(t, true, true, error, size);
}

bool hk_notify_template_fits(const struct hk_notify_template *t, bool incidents, char *error, size_t size)
{
  return notify_template_check(t, !incidents, incidents, error, size);
}
