/* The state of a group: see group.h. Rows are written from the oldest to the newest, independent of their places in the rings;
 * everything that is read is checked before use. */
#include "cpu/group/state.h"
#include "cpu/group/group_internal.h"
#include "cpu/rules/severity.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* Numbers have the representation of memory, little-endian. */
struct head {
  uint32_t shortest, hop, resident, wait, members;
  uint32_t n_members;
  int64_t interval;
  double threshold;
  int64_t next, newest;
  uint64_t rows;
  uint32_t live, since;
};
_Static_assert(sizeof(struct head) == 72, "no padding");

/* Of novelty `shortest` and `hop` are 0 and `threshold` is that of S; this comes after the head. */
struct novelty_part {
  struct hk_novelty_tail tail[2];
  double peak, severity;
  uint32_t seen, since, quiet, raised;
};
_Static_assert(sizeof(struct novelty_part) == 2 * sizeof(struct hk_novelty_tail) + 32, "no padding");

/* After the times of the closed rows: each member, of novelty its slow mean, its points of the rows from `next` to `newest`, its
 * values of the closed rows. */
struct member_head {
  uint32_t number, reserved;
  int64_t last, from;
};
_Static_assert(sizeof(struct member_head) == 24, "no padding");

struct point {
  int64_t time;
  double value; /* NaN: none */
};

/* Number of open rows with points. */
static uint32_t state_open_rows(int64_t next, int64_t newest)
{
  return next == HK_GROUP_NEVER ? 0 : (uint32_t)(newest - next + 1);
}

static bool state_is_novelty(const struct head *h)
{
  return h->shortest == 0 && h->hop == 0;
}

static size_t member_size(uint32_t open, uint32_t live, bool novelty)
{
  return sizeof(struct member_head) + (novelty ? sizeof(struct hk_group_slow) : 0) + open * sizeof(struct point) +
         live * sizeof(double);
}

static size_t state_size_of(const struct head *h)
{
  const bool novelty = state_is_novelty(h);
  return sizeof *h + (novelty ? sizeof(struct novelty_part) : 0) + h->live * sizeof(int64_t) +
         h->n_members * member_size(state_open_rows(h->next, h->newest), h->live, novelty);
}

static struct head state_head_of(const struct hk_group *g)
{
  const bool novelty = hk_group_is_novelty(g);
  return (struct head){ .shortest = novelty ? 0 : g->rule.shortest,
                        .hop = novelty ? 0 : g->rule.hop,
                        .resident = hk_group_rows(&g->rule),
                        .wait = g->rule.wait,
                        .members = g->rule.members,
                        .n_members = g->n_members,
                        .interval = g->rule.interval,
                        .threshold = novelty ? g->rule.novelty_threshold : g->rule.threshold,
                        .next = g->next,
                        .newest = g->newest,
                        .rows = g->rows,
                        .live = g->live,
                        .since = g->since };
}

size_t hk_group_state_size(const struct hk_group *g)
{
  const struct head head = state_head_of(g);
  return state_size_of(&head);
}

/* --- writing --------------------------------------------------------------------------------------------------------- */

static uint8_t *state_put(uint8_t *at, const void *data, size_t size)
{
  memcpy(at, data, size);
  return at + size;
}

static uint8_t *write_member(const struct hk_group *g, uint32_t number, uint8_t *at)
{
  const struct hk_group_member *m = g->member[number];
  const struct member_head head = { .number = number, .last = m->last, .from = m->from };
  const uint32_t open = state_open_rows(g->next, g->newest);
  at = state_put(at, &head, sizeof head);
  if (hk_group_is_novelty(g))
    at = state_put(at, &m->slow, sizeof m->slow);
  for (uint32_t i = 0; i < open; i++) {
    const uint32_t place = hk_group_place(g, g->next + i);
    const double value = m->pending[place];
    const struct point point = { isnan(value) ? 0 : m->time[place], value };
    at = state_put(at, &point, sizeof point);
  }
  for (uint32_t back = g->live; back > 0; back--)
    at = state_put(at, &m->value[hk_group_back(g, back)], sizeof(double));
  return at;
}

static uint8_t *write_novelty(const struct hk_group_novelty *n, uint8_t *at)
{
  const struct novelty_part part = { .tail = { n->tail[0], n->tail[1] },
                                     .peak = n->peak,
                                     .severity = n->severity,
                                     .seen = n->seen,
                                     .since = n->since,
                                     .quiet = n->quiet,
                                     .raised = n->raised };
  return state_put(at, &part, sizeof part);
}

void hk_group_write(const struct hk_group *g, void *state)
{
  const struct head head = state_head_of(g);
  uint8_t *at = state_put(state, &head, sizeof head);
  if (hk_group_is_novelty(g))
    at = write_novelty(&g->novelty, at);
  for (uint32_t back = g->live; back > 0; back--)
    at = state_put(at, &g->time[hk_group_back(g, back)], sizeof(int64_t));
  for (uint32_t i = 0; i < g->top; i++)
    if (g->member[i])
      at = write_member(g, i, at);
}

/* --- reading --------------------------------------------------------------------------------------------------------- */

static const uint8_t *state_get(const uint8_t *at, void *data, size_t size)
{
  memcpy(data, at, size);
  return at + size;
}

static bool state_is_row(int64_t interval, int64_t row)
{
  return row >= INT64_MIN / interval - 1 && row <= INT64_MAX / interval;
}

static bool is_value(double value)
{
  return isnan(value) || fabs(value) <= HK_GROUP_VALUE_MAX;
}

/* A slow mean less the first value may be twice as large. */
static bool group_state_is_kept(const struct hk_group *g, double value)
{
  return hk_group_is_novelty(g) ? isnan(value) || fabs(value) <= 4 * HK_GROUP_VALUE_MAX : is_value(value);
}

static bool is_slow(const struct hk_group_slow *s)
{
  return fabs(s->first) <= HK_GROUP_VALUE_MAX && fabs(s->mean) <= 4 * HK_GROUP_VALUE_MAX &&
         fabs(s->centre) <= 4 * HK_GROUP_VALUE_MAX && isfinite(s->variance);
}

static bool is_tail(const struct hk_novelty_tail *t)
{
  bool good = t->n <= HK_NOVELTY_TOP && t->n <= t->blocks && t->blocks < HK_NOVELTY_BLOCKS_MOST &&
              t->length < HK_GROUP_NOVELTY_BLOCK && isfinite(t->most);
  for (uint32_t i = 0; good && i < t->n; i++)
    good = t->top[i] >= (float)HK_NOVELTY_FLOOR && t->top[i] <= 2e4f && (i == 0 || t->top[i] <= t->top[i - 1]);
  return good;
}

/* Reads what novelty has after the head. NULL: not valid. */
static const uint8_t *read_novelty(struct hk_group_novelty *n, const uint8_t *at)
{
  struct novelty_part part;
  at = state_get(at, &part, sizeof part);
  *n = (struct hk_group_novelty){ .tail = { part.tail[0], part.tail[1] },
                                  .peak = part.peak,
                                  .severity = part.severity,
                                  .seen = part.seen,
                                  .since = part.since,
                                  .quiet = part.quiet,
                                  .raised = part.raised };
  const bool good = part.raised <= 1 && isfinite(part.peak) && part.severity >= 0 && part.severity <= HK_SEVERITY_MAX &&
                    part.since <= HK_GROUP_RESIDENT_MAX && part.quiet <= part.since && is_tail(&part.tail[0]) &&
                    is_tail(&part.tail[1]);
  return good ? at : NULL;
}

/* Whether a head is valid for a group of this rule. */
static bool state_is_good(const struct head *h, const struct hk_group_rule *rule, size_t size)
{
  char error[128];
  if (hk_group_check(rule, error, sizeof error) != 0 || h->live > hk_group_rows(rule) || h->resident != hk_group_rows(rule) ||
      h->n_members > h->members || h->since > 2 * HK_GROUP_RESIDENT_MAX || h->live > h->rows)
    return false;
  if (h->next == HK_GROUP_NEVER)
    return h->newest == HK_GROUP_NEVER && h->live == 0 && size == state_size_of(h);
  return state_is_row(h->interval, h->newest) && state_is_row(h->interval, h->next - 1) && h->newest - h->next >= -1 &&
         h->newest - h->next < h->wait && size == state_size_of(h);
}

/* Reads a member and advances *at. */
static int read_member(struct hk_group *g, const uint8_t **at)
{
  struct member_head head;
  struct point point;
  const uint32_t open = state_open_rows(g->next, g->newest);
  *at = state_get(*at, &head, sizeof head);
  if (head.number >= g->rule.members)
    return -EINVAL;
  const bool silent = head.last == HK_GROUP_NEVER;
  if (head.number < g->top || head.reserved != 0 || silent != (head.from == INT64_MAX) ||
      (!silent && (head.last > g->newest || !state_is_row(g->rule.interval, head.last))))
    return -EBADMSG;
  if (hk_group_add(g, head.number) != 0)
    return -ENOMEM;
  struct hk_group_member *m = g->member[head.number];
  if (hk_group_is_novelty(g))
    *at = state_get(*at, &m->slow, sizeof m->slow);
  if (!is_slow(&m->slow))
    return -EBADMSG;
  m->last = head.last;
  m->from = head.from;
  for (uint32_t i = 0; i < open; i++) {
    const uint32_t place = hk_group_place(g, g->next + i);
    *at = state_get(*at, &point, sizeof point);
    m->pending[place] = point.value;
    m->time[place] = point.time;
    g->waiting += !isnan(point.value);
    if (!is_value(point.value) || (isnan(point.value) && point.time != 0))
      return -EBADMSG;
  }
  *at = state_get(*at, m->value, g->live * sizeof(double));
  for (uint32_t i = 0; i < g->live; i++)
    if (!group_state_is_kept(g, m->value[i]))
      return -EBADMSG;
  return 0;
}

/* The rule that a state was written with, as far as it has it. */
static struct hk_group_rule state_rule_of(const struct head *h)
{
  struct hk_group_rule rule = hk_group_default();
  rule.wait = h->wait;
  rule.members = h->members;
  rule.interval = h->interval;
  if (state_is_novelty(h)) {
    rule.statistic = HK_GROUP_NOVELTY;
    rule.novelty_resident = h->resident - HK_GROUP_NOVELTY_AGE;
    rule.novelty_threshold = h->threshold;
  } else {
    rule.shortest = h->shortest;
    rule.hop = h->hop;
    rule.resident = h->resident;
    rule.threshold = h->threshold;
  }
  return rule;
}

int hk_group_read(struct hk_group **out, const struct hk_group_rule *rule, const void *state, size_t size)
{
  struct head h;
  if (size < sizeof h)
    return -EBADMSG;
  const uint8_t *at = state_get(state, &h, sizeof h);
  const struct hk_group_rule own = state_rule_of(&h);
  if (!state_is_good(&h, &own, size))
    return -EBADMSG;
  if (!rule)
    rule = &own;
  if (rule->statistic != own.statistic || hk_group_rows(rule) != h.resident || rule->wait != own.wait ||
      rule->interval != own.interval)
    return -EINVAL;
  struct hk_group *g;
  int status = hk_group_new(&g, rule);
  if (status != 0)
    return status;
  g->next = h.next;
  g->newest = h.newest;
  g->rows = h.rows;
  g->since = h.since;
  g->live = h.live;
  g->head = h.live < h.resident ? h.live : 0;
  if (hk_group_is_novelty(g) && !(at = read_novelty(&g->novelty, at))) {
    hk_group_free(g);
    return -EBADMSG;
  }
  at = state_get(at, g->time, h.live * sizeof *g->time);
  for (uint32_t i = 0; i < h.n_members && status == 0; i++)
    status = read_member(g, &at);
  if (status != 0) {
    hk_group_free(g);
    return status;
  }
  *out = g;
  return 0;
}
