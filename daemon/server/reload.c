/* The steps of a reload, and its report. */
#include "daemon/server/reload.h"

#include "daemon/base/systemd.h"
#include "daemon/config/config_diff.h"
#include "daemon/config/config_reader.h"
#include "daemon/scoring/hand_over.h"
#include "daemon/scoring/others.h"
#include "daemon/scoring/shard_reload.h"
#include "daemon/scoring/snapshot_slices.h"
#include "daemon/sensors/maintenance.h"
#include "daemon/server/operate.h"
#include "daemon/server/server.h"
#include "proto/wire/name.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOK 2          /* ms */
#define LINES_LOGGED 64 /* per reload */

static void on_look(uv_timer_t *timer);

/* Reports a fault in the file. */
static void reload_note(void *arg, const char *message)
{
  hk_buffer_print(arg, "%s\n", message);
}

/* Logs the lines of the report. */
static void log_lines(struct hk_server *s, enum hk_level level)
{
  const struct hk_buffer *told = &s->reload.told;
  uint32_t lines = 0, more = 0;
  for (size_t at = 0; at < told->size; lines++) {
    const char *end = memchr(told->data + at, '\n', told->size - at);
    const size_t length = end ? (size_t)(end - told->data) - at : told->size - at;
    if (lines < LINES_LOGGED)
      hk_log(&s->log, level, "reload: %.*s", (int)length, told->data + at);
    else
      more++;
    at += length + 1;
  }
  if (more > 0)
    hk_log(&s->log, level, "reload: %u more lines", more);
}

/* Logs the reload among the operations: as much as fits, in one line. */
static void log_operation(struct hk_server *s, bool taken)
{
  char text[HK_OPERATION_TEXT];
  const struct hk_buffer *told = &s->reload.told;
  size_t n = 0;
  for (size_t i = 0; i < told->size && n + 2 < sizeof text; i++) {
    if (told->data[i] != '\n')
      text[n++] = told->data[i];
    else if (i + 1 < told->size)
      n += (size_t)sprintf(text + n, "; ");
  }
  if (!hk_name_piece_valid(text, n, NULL)) /* a file may have any bytes in it, and a character may be cut */
    n = 0;
  hk_operate_log(s, &(struct hk_logged_operation){ .time = hk_wall(),
                                                   .kind = taken ? HK_LOGGED_RELOAD : HK_LOGGED_RELOAD_REFUSED,
                                                   .subject = hk_string(""),
                                                   .by = hk_string(""),
                                                   .text = { text, n } });
}

/* Ends the reload and reports that. taken: the configuration is in force. */
static void reload_finish(struct hk_server *s, bool taken)
{
  struct hk_reload *r = &s->reload;
  hk_notify("READY=1");
  log_lines(s, taken ? HK_LOG_NOTICE : HK_LOG_ERROR);
  log_operation(s, taken);
  pthread_mutex_lock(&r->lock);
  hk_buffer_free(&r->report);
  r->report = r->told;
  r->taken = taken;
  r->n_taken += taken;
  r->n_refused += !taken;
  pthread_mutex_unlock(&r->lock);
  r->told = (struct hk_buffer){ 0 };
  hk_sections_release(r->sections);
  free(r->learn);
  free(r->forget);
  r->sections = NULL;
  r->learn = r->forget = NULL;
  r->next = NULL;
  r->phase = HK_RELOAD_NONE;
  uv_timer_stop(&r->look);
  atomic_store_explicit(&r->done, r->begun, memory_order_release);
  hk_shard_settled(&s->shard[0]); /* requesters check again */
  if (atomic_load_explicit(&r->asked, memory_order_acquire) > r->begun && !uv_is_closing((uv_handle_t *)&r->call))
    (void)uv_async_send(&r->call);
}

/* Frees a configuration that is no longer in force, or never was. */
static void reload_discard(struct hk_reload *r, struct hk_config *config)
{
  if (config == r->at_start)
    return;
  config->listeners = NULL; /* all configurations share them */
  hk_config_free(config);
  free(config);
}

/* Defines a detector for the sensors that are scored, and for those that peers feed. */
static int reload_define_one(struct hk_server *s, uint32_t number, const struct hk_config_detector *d)
{
  const int status = hk_registry_define(s->shards.registry, number, d);
  return status == 0 && s->entry.n > 0 ? hk_registry_define(s->entry.registry, number, d) : status;
}

static void reload_refuse(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  for (uint32_t i = 0; i < r->request.n_learn; i++)
    (void)reload_define_one(s, r->learn[i].number, NULL);
  if (r->next)
    reload_discard(r, r->next);
  hk_gates_discard(&s->net.gates, r->credentials);
  r->credentials = NULL;
  hk_buffer_print(&r->told, "the configuration stays as it was\n");
  reload_finish(s, false);
}

static void reload_ask(struct hk_server *s, enum hk_reload_phase phase, enum hk_shard_reload_step what)
{
  s->reload.phase = phase;
  s->reload.request.what = what;
  for (uint32_t i = 0; i < s->shards.n + s->entry.n; i++)
    hk_shard_ask(hk_server_shard(s, i), &s->reload.request);
}

/* Detectors have their numbers: makes the new ones known to the registry, and lists for the backends. Returns 0 or -ENOMEM. */
static int reload_define(struct hk_server *s, const bool taken[HK_DETECTORS_MAX])
{
  struct hk_reload *r = &s->reload;
  struct hk_shard_reload_request *request = &r->request;
  bool stays[HK_DETECTORS_MAX] = { false };
  *request = (struct hk_shard_reload_request){ .config = r->next, .groups = hk_change_of_groups(s->config, r->next) };
  r->learn = calloc(r->next->n_detectors, sizeof *r->learn);
  r->forget = calloc(HK_DETECTORS_MAX, sizeof *r->forget);
  int status = r->learn && r->forget ? hk_sections_new(&r->sections, r->next) : -ENOMEM;
  for (uint32_t i = 0; i < r->next->n_detectors && status == 0; i++) {
    const struct hk_config_detector *d = &r->next->detectors[i];
    stays[d->number] = true;
    if (taken[d->number])
      continue;
    status = reload_define_one(s, d->number, d);
    if (status == 0)
      r->learn[request->n_learn++] = (struct hk_definition){ d->number, &d->detector };
  }
  for (uint32_t i = 0; i < HK_DETECTORS_MAX && status == 0; i++)
    if (taken[i] && !stays[i])
      r->forget[request->n_forget++] = (struct hk_definition){ i, NULL };
  request->sections = r->sections;
  request->learn = r->learn;
  request->forget = r->forget;
  return status;
}

/* Reads the configuration, and the certificates, keys and tokens, which take effect together with it. Thread: one of libuv's,
 * because a hanging file system must not stop the loop; until `reload_read_back`, no other thread reads its results. */
static void reload_read(uv_work_t *work)
{
  struct hk_server *s = work->data;
  struct hk_reload *r = &s->reload;
  char error[512];
  r->readable = false;
  if (hk_config_load(r->next, r->path, HK_CONFIG_FILE, reload_note, &r->told) != 0) {
    free(r->next);
    r->next = NULL;
    return;
  }
  if (s->net.gates.any_files && hk_gates_read(&s->net.gates, &r->credentials, error, sizeof error) != 0) {
    hk_buffer_print(&r->told, "%s\n", error);
    hk_config_free(r->next); /* its listeners are still its own */
    free(r->next);
    r->next = NULL;
    return;
  }
  r->readable = true;
}

/* Orders all loops to adopt what is in force, one order of each kind at a time. */
static void reload_order(struct hk_server *s, enum hk_order what)
{
  s->reload.ordered += s->net.n_loops;
  for (uint32_t i = 0; i < s->net.n_loops; i++)
    hk_loop_order(&s->net.loops[i], what);
}

static bool obeyed(struct hk_server *s)
{
  return atomic_load_explicit(&s->net.obeyed, memory_order_acquire) == s->reload.ordered;
}

static void adopt_credentials(struct hk_server *s)
{
  char line[768];
  if (!s->reload.credentials)
    return;
  hk_gates_adopt(&s->net.gates, s->reload.credentials, &s->log);
  s->reload.credentials = NULL;
  reload_order(s, HK_ORDER_ADMIT);
  hk_web_again(s->web);
  hk_buffer_print(&s->reload.told, "certificates, keys and tokens were read again\n");
  for (uint32_t i = 0; i < s->net.gates.n; i++) {
    if (hk_gate_expires(&s->net.gates.gate[i], line, sizeof line))
      hk_buffer_print(&s->reload.told, "%s\n", line);
    if (hk_gate_crl_expired(&s->net.gates.gate[i], line, sizeof line))
      hk_buffer_print(&s->reload.told, "%s\n", line);
  }
}

/* Compares the read configuration with the one in force. */
static void reload_compare(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  bool taken[HK_DETECTORS_MAX];
  for (uint32_t i = 0; i < HK_DETECTORS_MAX; i++)
    taken[i] = hk_registry_detector_of(s->shards.registry, i) != NULL;
  if (!hk_change_make(s->config, r->next, taken, &r->told)) {
    adopt_credentials(s);
    hk_buffer_print(&r->told, "the configuration is as it was\n");
    reload_discard(r, r->next);
    r->next = NULL;
    r->phase = HK_RELOAD_ADMIT;
    uv_timer_start(&r->look, on_look, 0, LOOK);
    return;
  }
  char line[512];
  for (uint32_t i = 0; i < r->next->n_detectors; i++)
    if (hk_sections_unreached(r->next, i, line, sizeof line))
      hk_buffer_print(&r->told, "%s\n", line);
  for (uint32_t at = 0; s->shards.n > 1 && hk_sections_share(r->next, &at, line, sizeof line);)
    hk_buffer_print(&r->told, "%s\n", line);
  for (uint32_t at = 0; hk_mqtt_rules_meet(&r->next->mqtt, &at, line, sizeof line);)
    hk_buffer_print(&r->told, "%s\n", line);
  if (reload_define(s, taken) != 0) {
    hk_buffer_print(&r->told, "no memory\n");
    reload_refuse(s);
    return;
  }
  reload_ask(s, HK_RELOAD_LEARN, HK_SHARD_RELOAD_LEARN);
  uv_timer_start(&r->look, on_look, LOOK, LOOK);
}

/* The files were read, or (status: UV_ECANCELED) never will be. */
static void reload_read_back(uv_work_t *work, int status)
{
  struct hk_server *s = work->data;
  struct hk_reload *r = &s->reload;
  if (status != 0 || s->drain.deadline != 0) {
    if (status == 0 && r->readable)
      hk_config_free(r->next); /* its listeners are still its own; if status is not 0 nothing was written to it */
    free(r->next);
    r->next = NULL;
    hk_buffer_print(&r->told, "the daemon ends\n");
    reload_refuse(s);
  } else if (!r->readable) {
    reload_refuse(s);
  } else {
    reload_compare(s);
  }
}

static void begin(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  char state[96];
  r->begun = atomic_load_explicit(&r->asked, memory_order_acquire);
  r->time = hk_now();
  r->request.n_learn = 0;
  snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, r->time / 1000);
  hk_notify(state);
  if (s->drain.deadline != 0 || !r->path || !(r->next = calloc(1, sizeof *r->next))) {
    hk_buffer_print(&r->told, "%s\n",
                    s->drain.deadline != 0 ? "the daemon ends"
                    : r->path              ? "no memory"
                                           : "there is no file to read");
    reload_refuse(s);
    return;
  }
  r->phase = HK_RELOAD_READ;
  r->read.data = s;
  const int status = uv_queue_work(&s->net.loops[0].uv, &r->read, reload_read, reload_read_back);
  if (status != 0)
    reload_read_back(&r->read, status);
}

static bool reload_answered(struct hk_server *s)
{
  bool all = true;
  for (uint32_t i = 0; i < s->shards.n + s->entry.n; i++)
    all &= hk_shard_has_answered(hk_server_shard(s, i));
  return all;
}

/* Whether all shards could carry out the last request; reports if not. */
static bool could(struct hk_server *s)
{
  bool all = true;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const struct hk_review *review = hk_shard_review(&s->shard[i]);
    if (review->status == 0)
      continue;
    all = false;
    hk_buffer_print(&s->reload.told, "the %s backend: %s\n", hk_shard_backend(&s->shard[i]),
                    review->why[0] ? review->why : strerror(-review->status));
  }
  return all;
}

static void reload_adopt(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  adopt_credentials(s);
  atomic_store_explicit(&s->log.level, r->next->log_level, memory_order_relaxed);
  hk_durable_adopt(&s->durable, r->next);
  hk_watch_budget(s->incidents, &r->next->incidents);
  if (hk_maintenance_adopt(s->shards.maintenance, r->next) != 0)
    hk_buffer_print(&r->told, "no memory for maintenance windows: those of before stay\n");
  if (hk_receivers_adopt(s->receivers, r->next) != 0)
    hk_buffer_print(&r->told, "no memory for a receiver of alerts that is new\n");
  if (hk_bridges_adopt(s->bridges, r->next) != 0)
    hk_buffer_print(&r->told, "no memory for a broker that is new\n");
  hk_registry_adopt(s->shards.registry, r->next, r->sections);
  if (s->entry.n > 0)
    hk_registry_adopt(s->entry.registry, r->next, r->sections);
  if (s->net.others)
    hk_registry_adopt(s->net.others->registry, r->next, r->sections);
  s->net.config = r->next;
  reload_order(s, HK_ORDER_ADOPT);
  reload_ask(s, HK_RELOAD_ADOPT, HK_SHARD_RELOAD_REVIEW);
}

/* All threads have adopted the new one. */
static void retire_old(struct hk_server *s)
{
  struct hk_config *old = (struct hk_config *)s->config; /* ours, unless it is the first */
  uint64_t evicted = 0, machines = 0, joined = 0, alone = 0;
  for (uint32_t i = 0; i < s->shards.n; i++) {
    const struct hk_review *review = hk_shard_review(&s->shard[i]);
    evicted += review->evicted - review->machines;
    machines += review->machines;
    joined += review->joined;
    alone += review->alone;
  }
  s->config = s->reload.next;
  reload_discard(&s->reload, old);
  if (evicted > 0)
    hk_buffer_print(&s->reload.told, "%" PRIu64 " sensors have another detector now, or none: they warm up again\n", evicted);
  if (machines > 0)
    hk_buffer_print(&s->reload.told, "%" PRIu64 " machines were removed, or warm up again\n", machines);
  if (joined > 0)
    hk_buffer_print(&s->reload.told, "%" PRIu64 " series of further algorithms were added to sensors that are there\n", joined);
  if (alone > 0) {
    char why[HK_REGISTRY_FULL_MAX];
    hk_buffer_print(&s->reload.told, "%" PRIu64 " sensors have no room for their further algorithms: %s\n", alone,
                    hk_registry_full(s->shards.registry, why));
  }
}

/* A start uses the configuration of that time: so points that were journaled under other detectors or groups are put into a
 * snapshot soon. */
static void reload_save(struct hk_server *s)
{
  if (s->reload.request.n_learn + s->reload.request.n_forget == 0 && !s->reload.request.groups)
    return;
  for (uint32_t i = 0; i < s->shards.n; i++)
    if (s->shard[i].saver)
      (void)hk_saver_ask(s->shard[i].saver, true);
}

static void reload_step(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  if (!reload_answered(s))
    return;
  switch (r->phase) {
  case HK_RELOAD_NONE:
  case HK_RELOAD_READ:
    return;
  case HK_RELOAD_LEARN:
    if (could(s))
      reload_adopt(s);
    else
      reload_refuse(s);
    return;
  case HK_RELOAD_ADOPT:
    if (!obeyed(s))
      return;
    (void)could(s); /* sensors that could not be evicted stay as they were, which is reported */
    retire_old(s);
    reload_ask(s, HK_RELOAD_FORGET, HK_SHARD_RELOAD_FORGET);
    return;
  case HK_RELOAD_FORGET:
    if (could(s))
      for (uint32_t i = 0; i < r->request.n_forget; i++)
        (void)reload_define_one(s, r->forget[i].number, NULL);
    reload_save(s);
    hk_buffer_print(&r->told, "the configuration is in force, after %.0f ms\n", (double)(hk_now() - r->time) * 1e-6);
    reload_finish(s, true);
    return;
  case HK_RELOAD_ADMIT:
    if (obeyed(s))
      reload_finish(s, true);
    return;
  }
}

static void on_look(uv_timer_t *timer)
{
  reload_step(timer->data);
}

static void on_call(uv_async_t *call)
{
  struct hk_server *s = call->data;
  if (s->reload.phase == HK_RELOAD_NONE && s->reload.asked > s->reload.done)
    begin(s);
}

uint64_t hk_reload_ask(struct hk_server *s)
{
  const uint64_t ticket = atomic_fetch_add_explicit(&s->reload.asked, 1, memory_order_acq_rel) + 1;
  (void)uv_async_send(&s->reload.call);
  return ticket;
}

bool hk_reload_result(struct hk_server *s, uint64_t ticket, struct hk_buffer *report, bool *taken)
{
  struct hk_reload *r = &s->reload;
  if (atomic_load_explicit(&r->done, memory_order_acquire) < ticket)
    return false;
  pthread_mutex_lock(&r->lock);
  hk_buffer_put(report, r->report.data, r->report.size);
  *taken = r->taken;
  pthread_mutex_unlock(&r->lock);
  return true;
}

void hk_reload_status(struct hk_server *s, struct hk_buffer *out)
{
  struct hk_reload *r = &s->reload;
  pthread_mutex_lock(&r->lock);
  const bool refused = r->n_refused > 0 && !r->taken;
  hk_buffer_print(out, "{\"state\":\"%s\",\"reloads\":%" PRIu64 ",\"refused\":%" PRIu64, refused ? "refused" : "in force",
                  r->n_taken, r->n_refused);
  if (refused && r->report.size > 0) { /* its first line */
    const char *end = memchr(r->report.data, '\n', r->report.size);
    hk_buffer_print(out, ",\"why\":");
    hk_json_string(out, r->report.data, end ? (size_t)(end - r->report.data) : r->report.size);
  }
  hk_buffer_print(out, "}");
  pthread_mutex_unlock(&r->lock);
}

int hk_reload_open(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  r->at_start = s->config;
  pthread_mutex_init(&r->lock, NULL);
  uv_timer_init(&s->net.loops[0].uv, &r->look);
  r->look.data = r->call.data = s;
  return uv_async_init(&s->net.loops[0].uv, &r->call, on_call);
}

void hk_reload_close(struct hk_server *s)
{
  struct hk_reload *r = &s->reload;
  if (r->next && r->next != s->config)
    reload_discard(r, r->next);
  if (r->at_start) { /* it was opened */
    reload_discard(r, (struct hk_config *)s->config);
    s->config = r->at_start;
    pthread_mutex_destroy(&r->lock);
  }
  hk_gates_discard(&s->net.gates, r->credentials);
  r->credentials = NULL;
  hk_sections_release(r->sections);
  free(r->learn);
  free(r->forget);
  hk_buffer_free(&r->told);
  hk_buffer_free(&r->report);
}
