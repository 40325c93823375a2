/* The keys of a field: see field.h. */
#include "cpu/field/rule.h"
#include "cpu/duration.h"
#include "cpu/field/arma.h"
#include "cpu/field/filter.h"
#include "cpu/field/focus.h"
#include "cpu/field/residual.h"
#include "cpu/rule_keys.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hk_field_rule hk_field_default(void)
{
  return (struct hk_field_rule){ .neighbours = HK_FIELD_AUTO,
                                 .q = 8,
                                 .refit = 24,
                                 .blame = 96,
                                 .wait = 4,
                                 .members = 1024,
                                 .interval = 1000000000,
                                 .forget = 0.999,
                                 .clip = 3.75,
                                 .adapt = 0.002,
                                 .hold = 10,
                                 .spike = 4,
                                 .focus = { .block = 8, .places = 4, .threshold = 6 } };
}

static int set_file(struct hk_field_rule *r, const char *key, const char *value, char *error, size_t size)
{
  if (value[0] == 0 || strlen(value) >= sizeof r->file) {
    snprintf(error, size, "%s: a path of 1 to %zu bytes is needed", key, sizeof r->file - 1);
    return -EINVAL;
  }
  snprintf(r->file, sizeof r->file, "%s", value);
  return 0;
}

const char *hk_field_operator_name(uint32_t kind)
{
  static const char *const name[] = {
    [HK_FIELD_RESIDUAL] = "residual", [HK_FIELD_MODEL] = "model",     [HK_FIELD_FOCUS] = "focus", [HK_FIELD_DESPIKE] = "despike",
    [HK_FIELD_MEDIAN] = "median",     [HK_FIELD_HOELDER] = "hoelder", [HK_FIELD_ARMA] = "arma"
  };
  return kind < sizeof name / sizeof *name ? name[kind] : "?";
}

static int set_operator(struct hk_field_rule *r, const char *value, char *error, size_t size)
{
  for (uint32_t kind = HK_FIELD_RESIDUAL; kind < HK_FIELD_KINDS; kind++) {
    if (strcmp(value, hk_field_operator_name(kind)) != 0)
      continue;
    r->kind = kind;
    r->neighbours = kind == HK_FIELD_FOCUS ? HK_FIELD_LINE : r->neighbours;
    return 0;
  }
  snprintf(error, size, "operator = %s: none of " HK_FIELD_OPERATORS, value);
  hk_suggest_of(value, HK_FIELD_OPERATORS, error, size);
  return -EINVAL;
}

#define RESIDUAL (1u << HK_FIELD_RESIDUAL)
#define MODEL (1u << HK_FIELD_MODEL)
#define FOCUS (1u << HK_FIELD_FOCUS)
#define FILTERS (1u << HK_FIELD_DESPIKE | 1u << HK_FIELD_MEDIAN)

/* The keys that not all operators have. */
static const struct {
  const char *name;
  uint32_t of; /* bits of the operators */
} keys[] = { { "neighbours", RESIDUAL },  { "positions", RESIDUAL | FOCUS },
             { "q", RESIDUAL },           { "refit", RESIDUAL },
             { "blame", RESIDUAL },       { "forget", RESIDUAL | FOCUS },
             { "file", MODEL },           { "adapt", MODEL },
             { "hold", MODEL },           { "speed", FOCUS },
             { "flow", FOCUS },           { "reach", FOCUS },
             { "travel", FOCUS },         { "block", FOCUS },
             { "places", FOCUS },         { "threshold", FOCUS },
             { "samples", FILTERS },      { "spike", FILTERS },
             { "clip", RESIDUAL | MODEL } };
#define KEYS (sizeof keys / sizeof *keys)

/* Records which operators do not have a key that was given. */
static void note_operator(struct hk_field_rule *r, const char *key)
{
  for (size_t i = 0; i < KEYS; i++)
    if (strcmp(key, keys[i].name) == 0)
      r->given |= ~keys[i].of;
}

/* Sets the speeds: up to HK_FOCUS_SPEEDS_MAX numbers, separated by blanks. */
static int set_speeds(struct hk_focus_keys *k, const char *value, char *error, size_t size)
{
  const char *at = value;
  uint32_t n = 0;
  for (char *end; *at; at = end + strspn(end, " ")) {
    const double speed = strtod(at, &end);
    if (end == at || (*end && *end != ' ') || !(speed > 0 && speed <= 1e100) || n == HK_FOCUS_SPEEDS_MAX) {
      n = 0;
      break;
    }
    k->speed[n++] = speed;
  }
  k->speeds = n;
  if (n > 0)
    return 0;
  snprintf(error, size, "speed = %s: one to %d numbers over 0 are needed, with blanks between them", value, HK_FOCUS_SPEEDS_MAX);
  return -EINVAL;
}

static int set_travel(struct hk_focus_keys *k, const char *value, char *error, size_t size)
{
  if (strcmp(value, "outward") != 0 && strcmp(value, "onward") != 0) {
    snprintf(error, size, "travel = %s: neither outward nor onward", value);
    return -EINVAL;
  }
  k->travel = strcmp(value, "onward") == 0 ? HK_FOCUS_ONWARD : HK_FOCUS_OUTWARD;
  return 0;
}

static int set_neighbours(struct hk_field_rule *r, const char *value, char *error, size_t size)
{
  r->neighbours = strcmp(value, "auto") == 0 ? HK_FIELD_AUTO : strcmp(value, "nearest") == 0 ? HK_FIELD_NEAREST : HK_FIELD_GRAPH;
  return r->neighbours == HK_FIELD_GRAPH ? set_file(r, "neighbours", value, error, size) : 0;
}

static int set_interval(struct hk_field_rule *r, const char *value, char *error, size_t size)
{
  int64_t interval;
  if (hk_duration_parse(value, &interval) == 0 && interval >= HK_FIELD_INTERVAL_MIN) {
    r->interval = interval;
    return 0;
  }
  snprintf(error, size, "interval = %s: not a duration such as 250ms or 5m, at least 1us", value);
  return -EINVAL;
}

/* Sets a key that is neither a whole nor a real number. */
static int set_other(struct hk_field_rule *r, const char *key, const char *value, char *error, size_t size)
{
  if (strcmp(key, "operator") == 0)
    return set_operator(r, value, error, size);
  if (strcmp(key, "interval") == 0)
    return set_interval(r, value, error, size);
  if (strcmp(key, "neighbours") == 0)
    return set_neighbours(r, value, error, size);
  if (strcmp(key, "speed") == 0)
    return set_speeds(&r->focus, value, error, size);
  if (strcmp(key, "travel") == 0)
    return set_travel(&r->focus, value, error, size);
  if (strcmp(key, "file") == 0) {
    r->modelled = true;
    return set_file(r, key, value, error, size);
  }
  if (strcmp(key, "positions") == 0) {
    r->placed = true;
    return set_file(r, key, value, error, size);
  }
  snprintf(error, size, "%s: there is no such key of a field", key);
  hk_suggest_of(key,
                "match, detector, operator, neighbours, positions, file, q, refit, blame, wait, members, hold, interval, forget, "
                "clip, adapt, samples, spike, speed, flow, reach, travel, block, places, threshold",
                error, size);
  return -EINVAL;
}

int hk_field_set(struct hk_field_rule *r, const char *key, const char *value, char *error, size_t size)
{
  const struct {
    const char *name;
    uint32_t *out, least, most;
  } wholes[] = { { "q", &r->q, 2, HK_RESIDUAL_NEIGHBOURS_MAX },
                 { "refit", &r->refit, 1, 4096 },
                 { "blame", &r->blame, 4, 4096 },
                 { "wait", &r->wait, 1, HK_FIELD_WAIT_MAX },
                 { "members", &r->members, 3, HK_FIELD_MEMBERS_MAX },
                 { "hold", &r->hold, 0, HK_MODEL_HOLD_MAX },
                 { "block", &r->focus.block, 1, HK_FOCUS_BLOCK_MAX },
                 { "places", &r->focus.places, 1, HK_FOCUS_PLACES_MAX },
                 { "samples", &r->samples, 3, HK_FILTER_SAMPLES_MAX } };
  const struct {
    const char *name;
    double *out, least, most;
  } reals[] = { { "forget", &r->forget, 0.9, 0.99999 },
                { "clip", &r->clip, 1, 1000 },
                { "adapt", &r->adapt, 0, 0.1 },
                { "spike", &r->spike, HK_FILTER_SPIKE_LEAST, HK_FILTER_SPIKE_MOST },
                { "flow", &r->focus.flow, -1e100, 1e100 },
                { "threshold", &r->focus.threshold, 0.1, 1000 },
                { "reach", &r->focus.reach, 1e-100, 1e100 } };
  note_operator(r, key);
  for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
    if (strcmp(key, wholes[i].name) == 0)
      return hk_rule_whole(wholes[i].out, wholes[i].least, wholes[i].most, key, value, error, size);
  for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
    if (strcmp(key, reals[i].name) == 0)
      return hk_rule_real(reals[i].out, reals[i].least, reals[i].most, key, value, error, size);
  return set_other(r, key, value, error, size);
}

/* Checks the keys that only a focus has. */
static int check_focus(const struct hk_field_rule *r, char *error, size_t size)
{
  const struct hk_focus_keys *k = &r->focus;
  if (!r->placed || !r->file[0] || k->speeds == 0 || !(k->reach > 0)) {
    snprintf(
        error, size,
        "operator = focus needs positions = FILE, with lines of NAME X; speed, of the change; and reach, how far it is looked "
        "for on both sides of its place");
    return -EINVAL;
  }
  for (uint32_t i = 0; i < k->speeds; i++)
    if (!(fabs(k->flow) < k->speed[i])) {
      snprintf(error, size, "flow = %g: it must be slower than the change, speed = %g", k->flow, k->speed[i]);
      return -EINVAL;
    }
  return 0;
}

/* Checks the keys of the operator, and that none of other operators was given. */
static int check_operator(const struct hk_field_rule *r, char *error, size_t size)
{
  char names[128] = "";
  for (size_t i = 0; i < KEYS; i++)
    if (!(keys[i].of >> r->kind & 1))
      snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", names[0] ? ", " : "", keys[i].name);
  if (r->given >> r->kind & 1) {
    snprintf(error, size, "operator = %s has none of the keys %s", hk_field_operator_name(r->kind), names);
    return -EINVAL;
  }
  if (r->kind == HK_FIELD_MODEL && !r->modelled) {
    snprintf(error, size, "operator = model needs file = FILE, which says what the line of pipes is (hankeld-model(7))");
    return -EINVAL;
  }
  if (r->samples % 2 == 0 && r->samples > 0) {
    snprintf(error, size, "samples = %u: an odd number is needed, so that there is one in the middle", r->samples);
    return -EINVAL;
  }
  return r->kind == HK_FIELD_FOCUS ? check_focus(r, error, size) : 0;
}

/* Whether the keys of a focus are within their limits. */
static bool is_focus(const struct hk_focus_keys *k)
{
  bool good = k->speeds <= HK_FOCUS_SPEEDS_MAX && k->travel <= HK_FOCUS_ONWARD && k->block >= 1 &&
              k->block <= HK_FOCUS_BLOCK_MAX && k->places >= 1 && k->places <= HK_FOCUS_PLACES_MAX && fabs(k->flow) <= 1e100 &&
              k->threshold >= 0.1 && k->threshold <= 1000 && k->reach >= 0 && k->reach <= 1e100;
  for (uint32_t i = 0; good && i < k->speeds; i++)
    good = k->speed[i] > 0 && k->speed[i] <= 1e100;
  return good;
}

int hk_field_check(const struct hk_field_rule *r, char *error, size_t size)
{
  const bool limits =
      r->kind < HK_FIELD_KINDS && is_focus(&r->focus) && r->samples <= HK_FILTER_SAMPLES_MAX && r->samples != 1 &&
      r->spike >= HK_FILTER_SPIKE_LEAST && r->spike <= HK_FILTER_SPIKE_MOST && r->adapt >= 0 && r->adapt <= 0.1 &&
      r->hold <= HK_MODEL_HOLD_MAX && r->neighbours <= (r->kind == HK_FIELD_FOCUS ? HK_FIELD_LINE : HK_FIELD_NEAREST) &&
      r->q >= 2 && r->q <= HK_RESIDUAL_NEIGHBOURS_MAX && r->refit >= 1 && r->refit <= 4096 && r->blame >= 4 && r->blame <= 4096 &&
      r->wait >= 1 && r->wait <= HK_FIELD_WAIT_MAX && r->members >= 3 && r->members <= HK_FIELD_MEMBERS_MAX &&
      r->interval >= HK_FIELD_INTERVAL_MIN && r->forget >= 0.9 && r->forget <= 0.99999 && r->clip >= 1 && r->clip <= 1000;
  const bool filed = (r->neighbours == HK_FIELD_NEAREST) == r->placed && (r->neighbours == HK_FIELD_AUTO) == !r->file[0];
  if (limits && check_operator(r, error, size) != 0)
    return -EINVAL;
  if (limits && r->kind != HK_FIELD_RESIDUAL)
    return 0;
  if (limits && filed && (r->neighbours != HK_FIELD_AUTO || r->members <= HK_FIELD_AUTO_MAX))
    return 0;
  if (limits && !filed)
    snprintf(error, size, "neighbours = nearest needs positions = FILE, and nothing else has them");
  else if (limits)
    snprintf(error, size, "members = %u: with neighbours = auto at most %u, for each is compared with all others", r->members,
             HK_FIELD_AUTO_MAX);
  else
    snprintf(error, size, "a key of a field is out of its limits");
  return -EINVAL;
}

static int field_rule_set(void *rule, const char *key, const char *value, char *error, size_t size)
{
  return hk_field_set(rule, key, value, error, size);
}

int hk_field_parse(const char *text, struct hk_field_rule *out, char *error, size_t size)
{
  *out = hk_field_default();
  const int status = hk_rule_parse(text, field_rule_set, out, error, size);
  return status == 0 ? hk_field_check(out, error, size) : status;
}

struct hk_residual_rule hk_field_residual_rule(const struct hk_field_rule *r)
{
  return (struct hk_residual_rule){ .neighbours = r->q,
                                    .refit = r->refit,
                                    .forget = r->forget,
                                    .clip = (float)r->clip,
                                    .fast = 3 / (float)r->blame,
                                    .slow = 1 / (8 * (float)r->blame) };
}

struct hk_model_rule hk_field_model_rule(const struct hk_field_rule *r)
{
  return (struct hk_model_rule){ .interval = (double)r->interval / 1e9, .adapt = r->adapt, .clip = r->clip, .hold = r->hold };
}

struct hk_filter_rule hk_field_filter_rule(const struct hk_field_rule *r)
{
  const bool despike = r->kind == HK_FIELD_DESPIKE;
  return (struct hk_filter_rule){ .samples = r->samples > 0 ? r->samples
                                             : despike      ? 7
                                                            : 5,
                                  .despike = despike,
                                  .spike = r->spike };
}

uint32_t hk_field_arma_rows(const struct hk_field_rule *r)
{
  const int64_t day = (int64_t)86400 * 1000000000 / r->interval;
  return day < HK_ARMA_ROWS_LEAST ? HK_ARMA_ROWS_LEAST : day > HK_ARMA_ROWS_MOST ? HK_ARMA_ROWS_MOST : (uint32_t)day;
}

struct hk_focus_rule hk_field_focus_rule(const struct hk_field_rule *r)
{
  return (struct hk_focus_rule){ .keys = r->focus, .interval = (double)r->interval / 1e9, .forget = (float)r->forget };
}
