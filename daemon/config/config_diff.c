/* Compares two configurations. */
#include "daemon/config/config_diff.h"

#include "cpu/field/filter.h"
#include "daemon/config/daemon_keys.h"

#include <stdlib.h>
#include <string.h>

static void tell_key(void *arg, const struct hk_key_change *change)
{
  struct hk_buffer *told = arg;
  if (change->live)
    hk_buffer_print(told, "%s: %s -> %s\n", change->name, change->before, change->after);
  else
    hk_buffer_print(told, "%s: %s -> %s needs a restart; it stays %s\n", change->name, change->before, change->after,
                    change->before);
}

static const struct hk_config_listener *listener_of(const struct hk_config *c, const char *name)
{
  for (uint32_t i = 0; i < c->n_listeners; i++)
    if (strcmp(c->listeners[i].name, name) == 0)
      return &c->listeners[i];
  return NULL;
}

/* Listeners are opened at the start only. */
static void compare_listeners(const struct hk_config *running, struct hk_config *read, struct hk_buffer *told)
{
  for (uint32_t i = 0; i < read->n_listeners; i++) {
    const struct hk_config_listener *after = &read->listeners[i], *before = listener_of(running, after->name);
    if (!before)
      hk_buffer_print(told, "[listen %s] is new: needs a restart\n", after->name);
    else if (memcmp(before, after, sizeof *before) != 0)
      hk_buffer_print(told, "[listen %s] is changed: needs a restart; it stays as it was\n", after->name);
  }
  for (uint32_t i = 0; i < running->n_listeners; i++)
    if (!listener_of(read, running->listeners[i].name))
      hk_buffer_print(told, "[listen %s] was removed: needs a restart; it stays\n", running->listeners[i].name);
  free(read->listeners);
  read->listeners = running->listeners;
  read->n_listeners = running->n_listeners;
}

static const struct hk_config_group *config_diff_group_of(const struct hk_config *c, const char *name)
{
  for (uint32_t i = 0; i < c->n_groups; i++)
    if (strcmp(c->groups[i].name, name) == 0)
      return &c->groups[i];
  return NULL;
}

static bool same_rule(const struct hk_config_group *a, const struct hk_config_group *b)
{
  const struct hk_group_rule *x = &a->rule, *y = &b->rule;
  return x->statistic == y->statistic && x->novelty_resident == y->novelty_resident &&
         x->novelty_threshold == y->novelty_threshold && x->shortest == y->shortest && x->hop == y->hop &&
         x->resident == y->resident && x->wait == y->wait && x->members == y->members && x->interval == y->interval &&
         x->threshold == y->threshold;
}

static void compare_groups(const struct hk_config *running, const struct hk_config *read, struct hk_buffer *told)
{
  for (uint32_t i = 0; i < read->n_groups; i++) {
    const struct hk_config_group *after = &read->groups[i], *before = config_diff_group_of(running, after->name);
    if (!before)
      hk_buffer_print(told, "[group %s] is new\n", after->name);
    else if (!same_rule(before, after))
      hk_buffer_print(told, "[group %s] is changed: its machines warm up again\n", after->name);
    if (before && strcmp(before->match, after->match) != 0)
      hk_buffer_print(told, "[group %s]: match = %s -> %s\n", after->name, before->match, after->match);
  }
  for (uint32_t i = 0; i < running->n_groups; i++)
    if (!config_diff_group_of(read, running->groups[i].name))
      hk_buffer_print(told, "[group %s] was removed\n", running->groups[i].name);
}

static const struct hk_config_field *field_of(const struct hk_config *c, const char *name, size_t length)
{
  for (uint32_t i = 0; i < c->n_fields; i++)
    if (strlen(c->fields[i].name) == length && memcmp(c->fields[i].name, name, length) == 0)
      return &c->fields[i];
  return NULL;
}

static bool same_focus(const struct hk_focus_keys *a, const struct hk_focus_keys *b)
{
  bool same = a->speeds == b->speeds && a->travel == b->travel && a->flow == b->flow && a->reach == b->reach &&
              a->block == b->block && a->places == b->places && a->threshold == b->threshold;
  for (uint32_t i = 0; same && i < a->speeds; i++)
    same = a->speed[i] == b->speed[i];
  return same;
}

/* Whether two fields' rows and residuals are equal. The contents of the file of neighbours matter, its name does not. */
static bool same_field_rule(const struct hk_config_field *a, const struct hk_config_field *b)
{
  const struct hk_field_rule *x = &a->rule, *y = &b->rule;
  return x->kind == y->kind && x->adapt == y->adapt && x->hold == y->hold && x->neighbours == y->neighbours && x->q == y->q &&
         x->refit == y->refit && x->blame == y->blame && x->wait == y->wait && x->members == y->members &&
         x->interval == y->interval && x->forget == y->forget && x->clip == y->clip && x->mark == y->mark &&
         x->spike == y->spike && hk_field_filter_rule(x).samples == hk_field_filter_rule(y).samples &&
         same_focus(&x->focus, &y->focus);
}

/* Whether both fields have a file, with different contents. */
static bool is_of_another_file(const struct hk_field_rule *x, const struct hk_field_rule *y)
{
  return x->mark != 0 && y->mark != 0 && x->mark != y->mark;
}

static void compare_fields(const struct hk_config *running, const struct hk_config *read, struct hk_buffer *told)
{
  for (uint32_t i = 0; i < read->n_fields; i++) {
    const struct hk_config_field *after = &read->fields[i], *before = field_of(running, after->name, strlen(after->name));
    if (!before)
      hk_buffer_print(told, "[field %s] is new\n", after->name);
    else if (!same_field_rule(before, after))
      hk_buffer_print(told, "[field %s] is changed%s: it starts over\n", after->name,
                      is_of_another_file(&before->rule, &after->rule) ? " (contents of its file)" : "");
    if (before && strcmp(before->match, after->match) != 0)
      hk_buffer_print(told, "[field %s]: match = %s -> %s\n", after->name, before->match, after->match);
    if (before && strcmp(before->detector, after->detector) != 0)
      hk_buffer_print(told, "[field %s]: detector = %s -> %s\n", after->name, before->detector, after->detector);
  }
  for (uint32_t i = 0; i < running->n_fields; i++)
    if (!field_of(read, running->fields[i].name, strlen(running->fields[i].name)))
      hk_buffer_print(told, "[field %s] was removed\n", running->fields[i].name);
}

static bool same_fields(const struct hk_config *a, const struct hk_config *b)
{
  bool same = a->n_fields == b->n_fields;
  for (uint32_t i = 0; same && i < a->n_fields; i++)
    same = strcmp(a->fields[i].name, b->fields[i].name) == 0 && strcmp(a->fields[i].match, b->fields[i].match) == 0 &&
           strcmp(a->fields[i].detector, b->fields[i].detector) == 0 && same_field_rule(&a->fields[i], &b->fields[i]);
  return same;
}

bool hk_change_of_groups(const struct hk_config *a, const struct hk_config *b)
{
  bool same = a->n_groups == b->n_groups;
  for (uint32_t i = 0; same && i < a->n_groups; i++)
    same = strcmp(a->groups[i].name, b->groups[i].name) == 0 && strcmp(a->groups[i].match, b->groups[i].match) == 0 &&
           same_rule(&a->groups[i], &b->groups[i]);
  return !same || !same_fields(a, b);
}

/* Whether the detectors of two fields' derived sensors are equal. */
static bool same_series(const struct hk_config *running, const struct hk_config_field *a, const struct hk_config *read,
                        const struct hk_config_field *b)
{
  bool same = a->n_series == b->n_series;
  for (uint32_t i = 0; same && i < a->n_series; i++) {
    const struct hk_config_detector *x = &running->detectors[a->series[i]], *y = &read->detectors[b->series[i]];
    same = strcmp(x->name, y->name) == 0 && memcmp(&x->detector, &y->detector, sizeof x->detector) == 0;
  }
  return same;
}

/* The series of a group or field continue only if its keys are unchanged. */
static bool same_group(const struct hk_config *running, const struct hk_config *read, const struct hk_config_detector *d)
{
  const char *name = d->residual ? d->name : d->name + 1;
  const size_t length = strcspn(name, "#");
  const struct hk_config_field *before = d->field ? field_of(running, name, length) : NULL;
  const struct hk_config_field *after = d->field ? field_of(read, name, length) : NULL;
  if (d->field)
    return same_field_rule(before, after) && same_series(running, before, read, after);
  return same_rule(config_diff_group_of(running, d->name + 1), config_diff_group_of(read, d->name + 1));
}

static const struct hk_config_detector *config_diff_detector_of(const struct hk_config *c, const char *name)
{
  for (uint32_t i = 0; i < c->n_detectors; i++)
    if (strcmp(c->detectors[i].name, name) == 0)
      return &c->detectors[i];
  return NULL;
}

/* Whether the order of common sections differs. */
static bool reordered(const struct hk_config *running, const struct hk_config *read)
{
  const struct hk_config_detector *last = running->detectors;
  for (uint32_t i = 0; i < read->n_detectors; i++) {
    const struct hk_config_detector *before = config_diff_detector_of(running, read->detectors[i].name);
    if (before && before < last)
      return true;
    last = before ? before : last;
  }
  return false;
}

static void compare_detectors(const struct hk_config *running, struct hk_config *read, const bool taken[HK_DETECTORS_MAX],
                              struct hk_buffer *told)
{
  uint32_t next = 0;
  for (uint32_t i = 0; i < read->n_detectors; i++) {
    struct hk_config_detector *after = &read->detectors[i];
    const struct hk_config_detector *before = config_diff_detector_of(running, after->name);
    char differences[512] = "";
    const bool same = before && before->field == after->field &&
                      memcmp(&before->detector, &after->detector, sizeof after->detector) == 0 &&
                      (!after->group || same_group(running, read, after));
    if (before)
      hk_detector_differences(&before->detector, &after->detector, differences, sizeof differences);
    if (same) {
      after->number = before->number;
    } else {
      while (taken[next]) /* there are twice as many numbers as detectors of a configuration */
        next++;
      after->number = next++;
    }
    if (after->group)
      continue; /* that is reported for the group */
    if (!before)
      hk_buffer_print(told, "[detector %s] is new\n", after->name);
    else if (!same)
      hk_buffer_print(told, "[detector %s] is changed (%s): its sensors warm up again\n", after->name, differences);
    if (before && !after->derived && strcmp(before->match, after->match) != 0)
      hk_buffer_print(told, "[detector %s]: match = %s -> %s\n", after->name, before->match, after->match);
  }
  for (uint32_t i = 0; i < running->n_detectors; i++)
    if (!running->detectors[i].group && !config_diff_detector_of(read, running->detectors[i].name))
      hk_buffer_print(told, "[detector %s] was removed\n", running->detectors[i].name);
  if (reordered(running, read))
    hk_buffer_print(told, "detectors or groups stand in another order\n");
}

/* The sections of one kind that have names: rules of `size` bytes that begin with it. */
struct rules {
  const void *rule;
  uint32_t n;
};

static const void *config_diff_rule_of(struct rules in, size_t size, const char *name)
{
  for (uint32_t i = 0; i < in.n; i++)
    if (strcmp((const char *)in.rule + i * size, name) == 0)
      return (const char *)in.rule + i * size;
  return NULL;
}

/* Says which of them are new, changed, or removed. */
static void compare_rules(const char *kind, size_t size, struct rules running, struct rules read, struct hk_buffer *told)
{
  for (uint32_t i = 0; i < read.n; i++) {
    const char *after = (const char *)read.rule + i * size, *before = config_diff_rule_of(running, size, after);
    if (!before || memcmp(before, after, size) != 0)
      hk_buffer_print(told, "[%s %s] is %s\n", kind, after, before ? "changed" : "new");
  }
  for (uint32_t i = 0; i < running.n; i++) {
    const char *before = (const char *)running.rule + i * size;
    if (!config_diff_rule_of(read, size, before))
      hk_buffer_print(told, "[%s %s] was removed\n", kind, before);
  }
}

static void compare_incidents_of(const struct hk_incidents_rule *before, const struct hk_incidents_rule *after,
                                 struct hk_buffer *told)
{
  const char *blank = after->name[0] ? " " : "", *name = after->name;
  if (before->interval != after->interval || before->members != after->members || strcmp(before->match, after->match) != 0)
    hk_buffer_print(told, "[incidents%s%s]: match, interval or members is changed: needs a restart; they stay as they were\n",
                    blank, name);
  if (before->a_day != after->a_day)
    hk_buffer_print(told, "[incidents%s%s]: budget = %g/day -> %g/day\n", blank, name, before->a_day, after->a_day);
}

/* Budgets change at once; all else needs a restart, since a sensor's incidents belong to one section. */
static void compare_incidents(const struct hk_config *running, struct hk_config *read, struct hk_buffer *told)
{
  const struct hk_incidents_sections after = read->incidents, *before = &running->incidents;
  uint32_t kept = 0;
  bool moved = false;
  read->incidents = *before;
  for (uint32_t i = 0; i < before->n; i++) {
    const struct hk_incidents_rule *now = hk_incidents_section(&after, before->of[i].name);
    if (now) {
      compare_incidents_of(&before->of[i], now, told);
      read->incidents.of[i].a_day = now->a_day;
      moved |= now < after.of + kept;
      kept = (uint32_t)(now - after.of);
    } else {
      hk_buffer_print(told, "[incidents%s%s] is gone: needs a restart; it stays as it was\n", before->of[i].name[0] ? " " : "",
                      before->of[i].name);
    }
  }
  for (uint32_t i = 0; i < after.n; i++)
    if (!hk_incidents_section(before, after.of[i].name))
      hk_buffer_print(told, "[incidents%s%s] is new: needs a restart\n", after.of[i].name[0] ? " " : "", after.of[i].name);
  if (moved)
    hk_buffer_print(told, "[incidents NAME]: their order is changed: needs a restart; it stays as it was\n");
}

/* Sections that have a name, and [incidents], in the order in which they are told. */
static void compare_named(const struct hk_config *running, struct hk_config *read, struct hk_buffer *told)
{
  _Static_assert(offsetof(struct hk_maintenance_rule, name) == 0 && offsetof(struct hk_notify_rule, name) == 0 &&
                     offsetof(struct hk_mqtt_rule, name) == 0 && offsetof(struct hk_pictures_rule, name) == 0,
                 "a rule begins with its name");
  compare_rules("maintenance", sizeof *read->maintenance, (struct rules){ running->maintenance, running->n_maintenance },
                (struct rules){ read->maintenance, read->n_maintenance }, told);
  compare_incidents(running, read, told);
  compare_rules("notify", sizeof *read->notify, (struct rules){ running->notify, running->n_notify },
                (struct rules){ read->notify, read->n_notify }, told);
  compare_rules("mqtt", sizeof *read->mqtt.rule, (struct rules){ running->mqtt.rule, running->mqtt.n },
                (struct rules){ read->mqtt.rule, read->mqtt.n }, told);
  compare_rules("pictures", sizeof *read->pictures.rule, (struct rules){ running->pictures.rule, running->pictures.n },
                (struct rules){ read->pictures.rule, read->pictures.n }, told);
}

/* The logs that points go to, and their readers, are fixed at the start. */
static void compare_cluster(const struct hk_config *running, struct hk_config *read, struct hk_buffer *told)
{
  if (memcmp(&running->cluster, &read->cluster, sizeof read->cluster) != 0)
    hk_buffer_print(told, "[cluster] is %s: needs a restart; it stays as it was\n",
                    running->cluster.role == HK_CLUSTER_NONE ? "new"
                    : read->cluster.role == HK_CLUSTER_NONE  ? "gone"
                                                             : "changed");
  read->cluster = running->cluster;
}

bool hk_change_make(const struct hk_config *running, struct hk_config *read, const bool taken[HK_DETECTORS_MAX],
                    struct hk_buffer *told)
{
  const size_t before = told->size;
  hk_config_follow(read, running);
  hk_keys_compare(running, read, tell_key, told);
  compare_listeners(running, read, told);
  compare_groups(running, read, told);
  compare_fields(running, read, told);
  compare_detectors(running, read, taken, told);
  compare_named(running, read, told);
  compare_cluster(running, read, told);
  return told->size > before || told->failed;
}
