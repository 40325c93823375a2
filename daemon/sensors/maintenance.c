/* A list of windows under a lock. The file has a line for each window that a client requested, see maintenance_file.h. It is
 * rewritten at each change. */
#include "daemon/sensors/maintenance.h"

#include "daemon/base/glob.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000ll
#define DAY 86400
#define KEPT (DAY * SECOND) /* ns that a window is kept after its end, since points may come late */

struct window {
  struct hk_maintenance_rule rule; /* name: of the section, or of the client who requested it */
  struct hk_glob *glob;
};

struct hk_maintenance {
  pthread_mutex_t lock; /* protects the windows */
  struct window *configured, *asked;
  uint32_t n_configured, n_asked;
  pthread_mutex_t saving; /* held while writing the file */
  const struct hk_disk *disk;
  int folder; /* -1: none */
  bool saved; /* under `saving`: there is a file, described by */
  struct hk_disk_file file;
};

static bool covers(const struct hk_maintenance_rule *r, int64_t time)
{
  const int32_t second = (int32_t)(time / SECOND % DAY);
  if (time < r->from || time >= r->to)
    return false;
  if (r->daily_from == r->daily_to)
    return true;
  return r->daily_from < r->daily_to ? second >= r->daily_from && second < r->daily_to
                                     : second >= r->daily_from || second < r->daily_to;
}

/* --- windows --------------------------------------------------------------------------------------------------------- */

static void free_windows(struct window *windows, uint32_t n)
{
  for (uint32_t i = 0; windows && i < n; i++)
    hk_glob_free(windows[i].glob);
  free(windows);
}

static int configured(const struct hk_config *config, struct window **out)
{
  struct window *made = calloc(config->n_maintenance + 1, sizeof *made);
  for (uint32_t i = 0; made && i < config->n_maintenance; i++) {
    made[i].rule = config->maintenance[i];
    if (hk_glob_new(&made[i].glob, made[i].rule.match, strlen(made[i].rule.match)) != 0) {
      free_windows(made, config->n_maintenance);
      made = NULL;
    }
  }
  *out = made;
  return made ? 0 : -ENOMEM;
}

int hk_maintenance_new(struct hk_maintenance **out, const struct hk_config *config)
{
  struct hk_maintenance *m = calloc(1, sizeof *m);
  if (!m || !(m->asked = calloc(HK_MAINTENANCE_ASKED, sizeof *m->asked)) || configured(config, &m->configured) != 0) {
    free(m ? m->asked : NULL);
    free(m);
    return -ENOMEM;
  }
  m->n_configured = config->n_maintenance;
  m->folder = -1;
  pthread_mutex_init(&m->lock, NULL);
  pthread_mutex_init(&m->saving, NULL);
  *out = m;
  return 0;
}

void hk_maintenance_free(struct hk_maintenance *m)
{
  if (!m)
    return;
  free_windows(m->configured, m->n_configured);
  free_windows(m->asked, m->n_asked);
  pthread_mutex_destroy(&m->lock);
  pthread_mutex_destroy(&m->saving);
  free(m);
}

int hk_maintenance_adopt(struct hk_maintenance *m, const struct hk_config *config)
{
  struct window *next;
  if (configured(config, &next) != 0)
    return -ENOMEM;
  pthread_mutex_lock(&m->lock);
  struct window *before = m->configured;
  const uint32_t n = m->n_configured;
  m->configured = next;
  m->n_configured = config->n_maintenance;
  pthread_mutex_unlock(&m->lock);
  free_windows(before, n);
  return 0;
}

bool hk_maintenance_covers(struct hk_maintenance *m, struct hk_string sensor, int64_t time)
{
  bool found = false;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->n_configured + m->n_asked && !found; i++) {
    const struct window *w = i < m->n_configured ? &m->configured[i] : &m->asked[i - m->n_configured];
    found = covers(&w->rule, time) && hk_glob_match(w->glob, sensor.data, sensor.length);
  }
  pthread_mutex_unlock(&m->lock);
  return found;
}

/* Removes windows that ended before a time. */
static void maintenance_forget(struct hk_maintenance *m, int64_t before)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < m->n_asked; i++) {
    if (m->asked[i].rule.to < before)
      hk_glob_free(m->asked[i].glob);
    else
      m->asked[n++] = m->asked[i];
  }
  m->n_asked = n;
}

/* Removes windows that ended long ago, and, if there is no room for another, the one that ended first. */
static void maintenance_make_room(struct hk_maintenance *m, int64_t now)
{
  int64_t first = INT64_MAX;
  maintenance_forget(m, now - KEPT);
  for (uint32_t i = 0; i < m->n_asked; i++)
    first = m->asked[i].rule.to < first ? m->asked[i].rule.to : first;
  if (m->n_asked == HK_MAINTENANCE_ASKED && first <= now)
    maintenance_forget(m, first + 1);
}

/* Whether a client's window is there, open or ended. */
static bool maintenance_has(const struct hk_maintenance *m, const struct hk_maintenance_rule *rule)
{
  for (uint32_t i = 0; i < m->n_asked; i++) {
    const struct hk_maintenance_rule *r = &m->asked[i].rule;
    if (r->from == rule->from && strcmp(r->match, rule->match) == 0 && strcmp(r->name, rule->name) == 0)
      return true;
  }
  return false;
}

int hk_maintenance_begin(struct hk_maintenance *m, struct hk_string glob, int64_t from, int64_t to, struct hk_string by)
{
  struct window w = { .rule = { .from = from, .to = to } };
  int status = glob.length <= HK_GLOB_MAX ? hk_glob_new(&w.glob, glob.data, glob.length) : -EINVAL;
  if (status != 0)
    return status;
  snprintf(w.rule.match, sizeof w.rule.match, "%.*s", (int)glob.length, glob.data);
  snprintf(w.rule.name, sizeof w.rule.name, "%.*s", (int)by.length, by.data);
  pthread_mutex_lock(&m->lock);
  status = maintenance_has(m, &w.rule) ? -EEXIST : 0;
  if (status == 0)
    maintenance_make_room(m, from);
  if (status == 0 && m->n_asked == HK_MAINTENANCE_ASKED)
    status = -ENOSPC;
  if (status == 0)
    m->asked[m->n_asked++] = w;
  pthread_mutex_unlock(&m->lock);
  if (status != 0)
    hk_glob_free(w.glob);
  return status;
}

uint32_t hk_maintenance_end(struct hk_maintenance *m, struct hk_string glob, int64_t now)
{
  uint32_t ended = 0;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->n_asked; i++) {
    struct hk_maintenance_rule *r = &m->asked[i].rule;
    if (strlen(r->match) != glob.length || memcmp(r->match, glob.data, glob.length) != 0 || r->to <= now)
      continue;
    r->to = now;
    ended++;
  }
  pthread_mutex_unlock(&m->lock);
  return ended;
}

void hk_maintenance_show(struct hk_maintenance *m, int64_t now, struct hk_buffer *out)
{
  const char *comma = "";
  char when[HK_TIME_TEXT_MAX];
  hk_buffer_put(out, "[", 1);
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->n_configured + m->n_asked; i++) {
    const bool asked = i >= m->n_configured;
    const struct hk_maintenance_rule *r = asked ? &m->asked[i - m->n_configured].rule : &m->configured[i].rule;
    if (r->to <= now)
      continue;
    hk_buffer_print(out, "%s{\"match\":", comma);
    hk_json_string(out, r->match, strlen(r->match));
    hk_buffer_print(out, asked ? ",\"by\":" : ",\"name\":");
    hk_json_string(out, r->name, strlen(r->name));
    if (r->from > 0) {
      hk_time_text(r->from / 1000000000, when);
      hk_buffer_print(out, ",\"from\":\"%s\"", when);
    }
    if (r->to < INT64_MAX) {
      hk_time_text(r->to / 1000000000, when);
      hk_buffer_print(out, ",\"to\":\"%s\"", when);
    }
    if (r->daily_from != r->daily_to)
      hk_buffer_print(out, ",\"daily\":\"%02d:%02d-%02d:%02d\"", r->daily_from / 3600, r->daily_from / 60 % 60,
                      r->daily_to / 3600, r->daily_to / 60 % 60);
    hk_buffer_print(out, ",\"now\":%s}", covers(r, now) ? "true" : "false");
    comma = ",";
  }
  pthread_mutex_unlock(&m->lock);
  hk_buffer_put(out, "]", 1);
}

/* --- the file -------------------------------------------------------------------------------------------------------- */

int hk_maintenance_save(struct hk_maintenance *m)
{
  struct hk_buffer text = { 0 };
  if (m->folder < 0)
    return 0;
  pthread_mutex_lock(&m->saving);
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->n_asked; i++) {
    const struct hk_maintenance_rule *r = &m->asked[i].rule;
    hk_buffer_print(&text, "%" PRId64 "\t%" PRId64 "\t%s\t%s\n", r->from, r->to, r->name, r->match);
  }
  pthread_mutex_unlock(&m->lock);
  struct hk_disk_file written;
  const int status = text.failed ? -ENOMEM
                                 : hk_disk_replace(m->disk, m->folder, HK_MAINTENANCE_FILE, HK_MAINTENANCE_FILE ".tmp", text.data,
                                                   text.size, &written);
  if (status == 0) {
    m->saved = true;
    m->file = written;
  }
  pthread_mutex_unlock(&m->saving);
  hk_buffer_free(&text);
  return status;
}

void hk_maintenance_mend(struct hk_maintenance *m, struct hk_log *log)
{
  struct hk_disk_file now;
  pthread_mutex_lock(&m->saving);
  int status = m->saved ? hk_disk_look(m->disk, m->folder, HK_MAINTENANCE_FILE, &now) : 0;
  const bool gone = m->saved && (status == -ENOENT || (status == 0 && !hk_disk_same(&now, &m->file)));
  pthread_mutex_unlock(&m->saving);
  if (!gone)
    return;
  status = hk_maintenance_save(m);
  if (status == 0)
    hk_log(log, HK_LOG_WARNING,
           "maintenance: the file of client-requested windows was removed or replaced, and is written again");
  else
    hk_log(log, HK_LOG_WARNING,
           "maintenance: the file of client-requested windows was removed or replaced, and cannot be written again: %s",
           strerror(-status));
}

void hk_maintenance_open(struct hk_maintenance *m, const struct hk_disk *disk, int folder, struct hk_log *log)
{
  struct hk_maintenance_saved saved = { 0 };
  struct hk_maintenance_line line;
  int more = 0;
  m->disk = disk;
  m->folder = folder;
  const int status = hk_maintenance_saved_open(&saved, disk, folder);
  if (status == -ENOENT)
    return;
  m->saved = hk_disk_look(disk, folder, HK_MAINTENANCE_FILE, &m->file) == 0; /* else the file is not checked */
  if (status != 0)
    hk_log(log, HK_LOG_WARNING, "maintenance: client-requested windows cannot be read and are ignored: %s", strerror(-status));
  while (status == 0 && (more = hk_maintenance_saved_next(&saved, &line)) != 0) {
    if (more < 0 || hk_maintenance_begin(m, line.glob, line.from, line.to, line.by) != 0)
      hk_log(log, HK_LOG_WARNING, "maintenance: a damaged line of the client-requested windows is ignored");
  }
  hk_maintenance_saved_close(&saved);
}
