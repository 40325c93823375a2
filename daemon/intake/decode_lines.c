/* Brings a line's points into the intake. See decode_lines.h. */
#include "daemon/intake/decode_lines.h"

#include "daemon/base/address.h"
#include "daemon/intake/line_cache.h"
#include "proto/line/split.h"

#include <errno.h>
#include <stdlib.h>

#define GATHERED 128u /* points whose names are looked up together */
#define PLACES (GATHERED - 1 + HK_LINE_FIELDS)
/* A handle is reused for another sensor after 256 evictions from one slot, each of a sensor that was silent for `evict`. So a
 * handle that has been in the cache for a shorter time is never another sensor's. */
#define REMEMBERED 100 /* multiples of `evict` */
/* Present times in s, ms or us, read as ns, are in January 1970. */
#define JANUARY (31 * (int64_t)86400000000000)
#define NEARLY (400 * (int64_t)86400000000000) /* ns: a time that is nearer to now is considered present */

/* The place of a point's name in its line. */
struct place {
  const char *key, *field;
  uint32_t key_length, field_length;
};

struct hk_lines {
  struct hk_intake *intake;
  struct hk_line_cache *cache;
  int64_t evict;
  int64_t cleared; /* hk_now: when the cache was last cleared */
  struct hk_log_quota early;
  struct hk_lines_told *told; /* the sender that waits for results; NULL: none */
  uint32_t n;                 /* gathered points */
  struct hk_line_key name[PLACES];
  struct place place[PLACES];
  uint64_t owner[PLACES];
  uint32_t handle[PLACES];
  int64_t time[PLACES];
  double value[PLACES];
  uint64_t number[PLACES]; /* number of the line, if the sender waits for results */
  struct hk_line line;     /* the parser's result */
};

int hk_lines_new(struct hk_lines **out, struct hk_intake *intake, int64_t evict)
{
  struct hk_lines *l = calloc(1, sizeof *l);
  if (!l)
    return -ENOMEM;
  l->intake = intake;
  l->evict = evict;
  l->cleared = hk_now();
  const int status = hk_line_cache_new(&l->cache);
  if (status == 0)
    *out = l;
  else
    hk_lines_free(l);
  return status;
}

void hk_lines_adopt(struct hk_lines *l, int64_t evict)
{
  l->evict = evict;
  l->cleared = hk_now();
  hk_line_cache_clear(l->cache);
}

void hk_lines_free(struct hk_lines *l)
{
  if (!l)
    return;
  hk_line_cache_free(l->cache);
  free(l);
}

static void add_fault(struct hk_lines_told *told, uint64_t line, uint32_t byte, const char *why)
{
  if (told->n < HK_LINES_FAULTS)
    told->fault[told->n++] = (struct hk_lines_fault){ line, byte, why };
}

/* byte: the position of the fault; 0: it has none. */
static void decode_lines_tell(struct hk_lines *l, const struct hk_lines_from *from, uint64_t number, uint32_t byte,
                              const char *why)
{
  char address[HK_ADDRESS_MAX] = "", place[24] = "";
  hk_count(&l->intake->counters->bad_lines, 1);
  if (from->told) {
    from->told->refused++;
    add_fault(from->told, number, byte, why);
  }
  if (hk_log_spent(l->intake->log, from->quota, HK_LOG_WARNING))
    return;
  if (from->address)
    hk_address_format(from->address, address);
  if (byte > 0)
    snprintf(place, sizeof place, ", byte %u", byte);
  hk_log_peer(l->intake->log, from->quota, HK_LOG_WARNING, from->address ? address : from->peer, "line %llu dropped%s: %s",
              (unsigned long long)number, place, why);
}

/* Adds the points of the parsed line to the gathered ones. */
static void decode_lines_gather(struct hk_lines *l, const struct hk_lines_from *from, uint64_t number)
{
  const struct hk_line *line = &l->line;
  if (line->error) {
    decode_lines_tell(l, from, number, line->error_byte, line->error);
    return;
  }
  hk_count(&l->intake->counters->lines, 1);
  hk_count(&l->intake->counters->strings, line->strings);
  /* Without a step, lines without a time that are read together would all get the same time, and all but the first of a sensor
   * would be late. */
  const int64_t time = line->timed ? line->time : l->intake->wall++;
  hk_line_cache_hash(l->cache, line, l->name + l->n);
  for (uint32_t i = 0; i < line->n; i++) {
    const struct hk_line_point *p = &line->points[i];
    l->place[l->n] = (struct place){ line->key, p->field, line->key_length, p->field_length };
    l->owner[l->n] = from->owner;
    l->time[l->n] = time;
    l->value[l->n] = p->value;
    if (l->told)
      l->number[l->n] = number;
    l->n++;
  }
}

/* Finds the unit in which a time, which was read as ns, would be near the present; NULL: none. */
static const char *unit_of_today(int64_t time, int64_t wall)
{
  static const struct {
    const char *name;
    int64_t ns;
  } units[] = { { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    const int64_t today = wall / units[i].ns, around = NEARLY / units[i].ns;
    if (time > today - around && time < today + around)
      return units[i].name;
  }
  return NULL;
}

/* The point is accepted nevertheless: recordings may have any time. */
static void tell_early(struct hk_lines *l, const char *name, uint32_t length, int64_t time)
{
  const char *unit = unit_of_today(time, hk_wall());
  if (unit)
    hk_log_peer(l->intake->log, &l->early, HK_LOG_WARNING, "lines",
                "sensor %.*s: its times are in January 1970; they would be of today in %s: set precision = %s in the [listen] "
                "section",
                (int)length, name, unit, unit);
  else
    hk_log_peer(l->intake->log, &l->early, HK_LOG_WARNING, "lines",
                "sensor %.*s: its times are in January 1970; are they in another unit than the listener's precision?",
                (int)length, name);
}

/* Takes the name of point i as the registry knows it. *early: whether early times were told, of points that were gathered with
 * it.
 */
static void decode_lines_learn(struct hk_lines *l, uint32_t i, bool *early)
{
  const struct place *p = &l->place[i];
  char buffer[HK_NAME_MAX];
  uint32_t length, slot;
  const char *name = hk_line_join(p->key, p->key_length, p->field, p->field_length, buffer, &length);
  const int refusal = hk_intake_find(l->intake, l->owner[i], name, length, &slot);
  if (refusal != 0) {
    l->name[i].check = 0;
    if (l->told) {
      l->told->nameless++;
      add_fault(l->told, l->number[i], 0, hankel_refusal_name(refusal));
    }
    return;
  }
  if (l->time[i] < JANUARY && !*early) {
    tell_early(l, name, length, l->time[i]);
    *early = true;
  }
  l->handle[i] = hk_registry_handle(l->intake->registry, slot);
  hk_line_cache_put(l->cache, &l->name[i], l->handle[i]);
}

/* Finds the handles; a point whose name is refused has a name without a check afterwards. Returns max_sensors. */
static uint32_t decode_lines_look_up(struct hk_lines *l)
{
  const struct hk_handles handles = hk_registry_lookup(l->intake->registry);
  bool learned, early = false;
  hk_line_cache_find(l->cache, l->n, l->name, l->handle);
  do { /* checked again: a device that fails when a sensor is added may leave other sensors without room */
    learned = false;
    for (uint32_t i = 0; i < l->n; i++) {
      if (!hk_handle_good(&handles, l->handle[i]) && l->name[i].check != 0) {
        decode_lines_learn(l, i, &early);
        learned = true;
      }
    }
  } while (learned);
  return handles.max_sensors;
}

/* Clears the cache when its handles may be too old. */
static void decode_lines_forget(struct hk_lines *l)
{
  const int64_t now = hk_now();
  if (l->evict > 0 && (now - l->cleared) / REMEMBERED >= l->evict) {
    hk_line_cache_clear(l->cache);
    l->cleared = now;
  }
}

void hk_lines_flush(struct hk_lines *l, struct hk_source *source)
{
  uint32_t slot[PLACES], n = 0;
  const uint32_t gathered = l->n;
  if (gathered == 0)
    return;
  hk_count(&l->intake->counters->in, gathered); /* points without a sensor are not counted in any other way */
  decode_lines_forget(l);
  const uint32_t max_sensors = decode_lines_look_up(l);
  for (uint32_t i = 0; i < gathered; i++) {
    if (l->name[i].check == 0)
      continue;
    slot[n] = hk_handle_slot(l->handle[i], max_sensors);
    l->time[n] = l->time[i];
    l->value[n] = l->value[i];
    n++;
  }
  const uint64_t ahead = l->intake->counters->ahead;
  hk_intake_slots(l->intake, source, n, &(struct hk_columns){ slot, l->time, l->value });
  if (l->told) {
    l->told->points += n;
    l->told->ahead += l->intake->counters->ahead - ahead;
  }
  l->n = 0;
}

/* Whether the line is the first line of an HTTP request. status: of the splitter. */
static bool lines_http(const struct hk_lines *l, int status)
{
  return (status == HK_LINE_TOO_LONG || (status == HK_LINE_WHOLE && l->line.error)) && l->line.http;
}

enum hk_lines_turn hk_lines_read(struct hk_lines *l, const struct hk_lines_from *from, struct hk_splitter *splitter, char *data,
                                 size_t size, size_t *used)
{
  l->line.unit = from->unit;
  l->told = from->told;
  for (;;) {
    const bool held = splitter->n_held > 0;
    const int status = hk_splitter_parse(splitter, &l->line, data, size, used);
    if (splitter->line == 1 && !from->told && lines_http(l, status)) {
      hk_count(&l->intake->counters->bad_lines, 1);
      return HK_LINES_HTTP;
    }
    if (status == HK_LINE_WHOLE)
      decode_lines_gather(l, from, splitter->line);
    else if (status != HK_LINE_NONE)
      decode_lines_tell(l, from, splitter->line, 0, status == HK_LINE_TOO_LONG ? "longer than max_line" : "no memory to hold it");
    else
      return HK_LINES_USED;
    if (l->n >= GATHERED || held) { /* the splitter's memory for a held line may be moved */
      hk_lines_flush(l, from->source);
      return HK_LINES_MORE;
    }
  }
}

void hk_lines_end(struct hk_lines *l, const struct hk_lines_from *from, struct hk_splitter *splitter)
{
  const char *text;
  size_t length;
  if (hk_splitter_end(splitter, &text, &length) != HK_LINE_WHOLE)
    return;
  l->line.unit = from->unit;
  l->told = from->told;
  hk_line_parse(&l->line, text, length);
  decode_lines_gather(l, from, splitter->line);
  hk_lines_flush(l, from->source);
}
