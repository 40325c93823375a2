/* The keys that apply to each algorithm, their defaults, and the checks of their consistency. */
#include "cpu/detector_keys.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

static uint32_t smaller(uint32_t a, uint32_t b)
{
  return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

#define DEFAULT(key, field, value)                                                                                               \
  do {                                                                                                                           \
    if (!(draft->given & KEY_BIT(key)))                                                                                          \
      d.field = (value);                                                                                                         \
  } while (0)

/* Keys that do not apply to a graph, and keys that apply only to it; likewise for the other algorithms. */
static const uint64_t not_of_graph =
    KEY_BIT(KEY_PRESENT) | KEY_BIT(KEY_OPERATOR) | KEY_BIT(KEY_SCALE) | KEY_BIT(KEY_SOLVER) | KEY_BIT(KEY_REORTHOGONALISE) |
    KEY_BIT(KEY_GAP) | KEY_BIT(KEY_RANK) | KEY_BIT(KEY_KRYLOV) | KEY_BIT(KEY_PRODUCTS) | KEY_BIT(KEY_BASELINE) |
    KEY_BIT(KEY_MIN_SCORE) | KEY_BIT(KEY_CLEAR) | KEY_BIT(KEY_SIGNAL) | KEY_BIT(KEY_FALSE_ALARMS) | KEY_BIT(KEY_LIMIT) |
    KEY_BIT(KEY_LOWER) | KEY_BIT(KEY_HORIZON) | KEY_BIT(KEY_CONFIDENCE) | KEY_BIT(KEY_PROVISIONAL) | KEY_BIT(KEY_CHANNELS);
static const uint64_t of_graph_alone = KEY_BIT(KEY_RESIDENT) | KEY_BIT(KEY_NEIGHBOURS) | KEY_BIT(KEY_LEVEL) |
                                       KEY_BIT(KEY_ROUGHNESS) | KEY_BIT(KEY_SHORTEST) | KEY_BIT(KEY_LOCALITY);

static const uint64_t of_limit_alone = KEY_BIT(KEY_LIMIT) | KEY_BIT(KEY_LOWER) | KEY_BIT(KEY_HORIZON) | KEY_BIT(KEY_CONFIDENCE);

static const uint64_t not_of_sst = of_graph_alone | of_limit_alone | KEY_BIT(KEY_CHANNELS);
static const uint64_t not_of_shift = (not_of_graph & ~(KEY_BIT(KEY_BASELINE))) | of_graph_alone;
static const uint64_t not_of_novelty =
    ~(KEY_BIT(KEY_ALGORITHM) | KEY_BIT(KEY_PRESET) | KEY_BIT(KEY_RESIDENT) | KEY_BIT(KEY_INTERVAL) | KEY_BIT(KEY_SILENT) |
      KEY_BIT(KEY_ALERT) | KEY_BIT(KEY_FALSE_ALARMS) | KEY_BIT(KEY_RATE) | KEY_BIT(KEY_CHANNELS));
static const uint64_t not_of_limit =
    ~(KEY_BIT(KEY_ALGORITHM) | KEY_BIT(KEY_PRESET) | KEY_BIT(KEY_WINDOW) | KEY_BIT(KEY_INTERVAL) | KEY_BIT(KEY_SILENT) |
      KEY_BIT(KEY_ALERT) | KEY_BIT(KEY_HOLD) | KEY_BIT(KEY_RATE) | of_limit_alone);

uint64_t hk_detector_strange(const struct hk_detector_draft *draft, uint8_t algorithm)
{
  const struct hk_detector *d = &draft->detector;
  const bool sst = algorithm == HK_ALGORITHM_IKA || algorithm == HK_ALGORITHM_SVD;
  uint64_t strange = algorithm == HK_ALGORITHM_GRAPH     ? not_of_graph
                     : algorithm == HK_ALGORITHM_SHIFT   ? not_of_shift
                     : algorithm == HK_ALGORITHM_NOVELTY ? not_of_novelty
                     : algorithm == HK_ALGORITHM_LIMIT   ? not_of_limit
                                                         : not_of_sst;
  if (!sst)
    strange |= KEY_BIT(KEY_PRESET);
  if ((!sst && d->alert == HK_ALERT_ADAPTIVE) || (algorithm == HK_ALGORITHM_LIMIT && d->alert != HK_ALERT_OFF))
    strange |= KEY_BIT(KEY_ALERT);
  if (algorithm != HK_ALGORITHM_SVD)
    strange |= KEY_BIT(KEY_SOLVER);
  if ((algorithm != HK_ALGORITHM_GRAPH && d->search) || (algorithm == HK_ALGORITHM_LIMIT) != (d->limit.window > 0))
    strange |= KEY_BIT(KEY_WINDOW);
  return draft->given & strange;
}

/* Refuses keys that do not apply to an algorithm. */
static int refuse_others(const struct hk_detector_draft *draft, uint64_t others, const char *algorithm, char *error, size_t size)
{
  for (enum hk_key k = 0; k < KEYS; k++) {
    if (draft->given & others & KEY_BIT(k))
      return hk_detector_fail(error, size, "%s: does not apply to %s; leave it out%s", hk_detector_key_name(k), algorithm, "");
  }
  if (draft->preset != PRESET_DEFAULT)
    return hk_detector_fail(error, size, "%s = %s: does not apply to %s; leave it out", "preset",
                            hk_detector_word(KEY_PRESET, draft->preset), algorithm);
  return 0;
}

/* The alert of algorithms that learn no threshold: a fixed one. */
static int finish_alert(const struct hk_detector_draft *draft, struct hk_detector *d, const char *algorithm, char *error,
                        size_t size)
{
  if (!(draft->given & KEY_BIT(KEY_ALERT))) {
    d->alert = HK_ALERT_FIXED;
    d->threshold = 0.5f;
  }
  if (d->alert == HK_ALERT_ADAPTIVE)
    return hk_detector_fail(error, size,
                            "alert = adaptive: not for %s%s, which learns no threshold: give off, or a score such as 0.5%s",
                            algorithm, "", "");
  if (d->alert == HK_ALERT_FIXED && d->threshold >= 1)
    return hk_detector_fail(error, size, "alert = 1: must be below 1 for %s%s%s", algorithm, "", "");
  return 0;
}

static int check_cooldown(const struct hk_detector *d, char *error, size_t size)
{
  char value[40], allowed[80];
  if (d->cooldown <= hk_detector_span(d))
    return 0;
  snprintf(value, sizeof value, "%u", d->cooldown);
  snprintf(allowed, sizeof allowed, "at most the samples kept, %u", hk_detector_span(d));
  return hk_detector_fail(error, size, "%s = %s: must be %s", "cooldown", value, allowed);
}

static int finish_shift(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector d = draft->detector;
  int status = refuse_others(draft, not_of_shift, "algorithm = shift", error, size);
  if (status == 0 && d.search)
    status = hk_detector_fail(error, size, "%s = %s: a window is found for %s alone, give a number", "window", "auto",
                              "algorithm = graph");
  DEFAULT(KEY_WINDOW, window, 20);
  DEFAULT(KEY_STRIDE, stride, larger(1, d.window / 20));
  DEFAULT(KEY_MAX_FILL, max_fill, 3);
  DEFAULT(KEY_HOLD, hold, 1);
  DEFAULT(KEY_COOLDOWN, cooldown, 0);
  DEFAULT(KEY_BASELINE, baseline, 25);
  if (status == 0)
    status = finish_alert(draft, &d, "algorithm = shift", error, size);
  if (status == 0 && d.stride > d.window)
    status = hk_detector_fail(error, size, "%s: must be at most the window for %s%s", "stride", "algorithm = shift", "");
  if (status == 0)
    status = check_cooldown(&d, error, size);
  if (status == 0)
    *out = d;
  return status;
}

/* The S that is exceeded by chance at a desired rate per point: there are three channels, and a block has HK_NOVELTY_BLOCK
 * points. */
static double novelty_threshold(double rate)
{
  return log10(3 / (HK_NOVELTY_BLOCK * rate));
}

/* Sets the threshold by the rate of false alarms, if it was given, for a detector whose `resident` is set. */
static int novelty_alarms(const struct hk_detector_draft *draft, struct hk_detector *d, char *error, size_t size)
{
  char value[40], allowed[140];
  if (!(draft->given & KEY_BIT(KEY_FALSE_ALARMS)))
    return 0;
  if (draft->given & KEY_BIT(KEY_ALERT) && d->alert == HK_ALERT_FIXED)
    return hk_detector_fail(error, size, "%s: says the same as alert of %s, give one of the two%s", "false_alarms",
                            "algorithm = novelty", "");
  const bool brief = d->resident < HK_NOVELTY_ALARMS_LONG;
  const int least = brief ? HK_NOVELTY_ALARMS_SHORT : HK_NOVELTY_ALARMS_LEAST;
  if (!(d->false_alarms >= (float)least && d->false_alarms <= HK_NOVELTY_ALARMS_MOST)) {
    snprintf(value, sizeof value, "%.10g", (double)d->false_alarms);
    snprintf(allowed, sizeof allowed,
             "from %d to %d a million scores for algorithm = novelty%s: no lower rate held in measurements", least,
             HK_NOVELTY_ALARMS_MOST, brief ? " with resident under 5000" : "");
    return hk_detector_fail(error, size, "%s = %s: must be %s", "false_alarms", value, allowed);
  }
  const double s = novelty_threshold((double)d->false_alarms / 1e6);
  d->threshold = (float)(s / (s + HK_NOVELTY_UNIT));
  return 0;
}

static int finish_novelty(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector d = draft->detector;
  char value[40], allowed[80];
  int status = refuse_others(draft, not_of_novelty, "algorithm = novelty", error, size);
  if (status == 0)
    status = finish_alert(draft, &d, "algorithm = novelty", error, size);
  if (status < 0)
    return status;
  DEFAULT(KEY_RESIDENT, resident, HK_NOVELTY_RESIDENT_MAX);
  if (d.resident < HK_NOVELTY_RESIDENT_MIN) {
    snprintf(value, sizeof value, "%u", d.resident);
    snprintf(allowed, sizeof allowed, "from %d to %d for algorithm = novelty", HK_NOVELTY_RESIDENT_MIN, HK_NOVELTY_RESIDENT_MAX);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  status = novelty_alarms(draft, &d, error, size);
  if (status < 0)
    return status;
  d.window = HK_NOVELTY_SHAPE_REACH; /* no key of novelty, but every detector has one */
  d.stride = d.hold = d.baseline = 1;
  *out = d;
  return 0;
}

/* Checks the window and the horizon of algorithm = limit. */
static int check_limit_times(const struct hk_detector *d, char *error, size_t size)
{
  const int64_t block = d->limit.window / HK_LIMIT_BLOCKS;
  if (d->limit.window < HK_LIMIT_WINDOW_MIN || d->limit.window > HK_LIMIT_WINDOW_MAX)
    return hk_detector_fail(error, size, "%s%s: must be from 1m to 1000d for %s", "window", "", "algorithm = limit");
  if (d->interval > block)
    return hk_detector_fail(error, size, "%s%s: there must be one in each of 24 blocks of the window: %s", "interval", "",
                            "at most window / 24, so give a longer window");
  if (d->limit.horizon < block || d->limit.horizon / HK_LIMIT_HORIZON_MAX > d->limit.window)
    return hk_detector_fail(error, size, "%s%s: must be from window / 24 to %s", "horizon", "",
                            "20 windows: what lies farther ahead than that, the window does not tell");
  return 0;
}

static int finish_limit(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector d = draft->detector;
  int status = refuse_others(draft, not_of_limit, "algorithm = limit", error, size);
  if (status == 0 && draft->given & KEY_BIT(KEY_WINDOW) && d.limit.window == 0)
    status = hk_detector_fail(error, size, "%s: for %s a duration, such as 12h%s", "window", "algorithm = limit", "");
  if (status == 0 && draft->given & KEY_BIT(KEY_ALERT) && d.alert != HK_ALERT_OFF)
    status = hk_detector_fail(error, size, "%s: for %s off, or left out: %s", "alert", "algorithm = limit",
                              "confidence and horizon say when one is raised");
  if (status == 0 && !d.limit.has_upper && !d.limit.has_lower)
    status = hk_detector_fail(error, size, "%s: %s needs a limit%s", "limit, lower", "algorithm = limit",
                              ", above or below: neither is given");
  if (status == 0 && d.limit.has_upper && d.limit.has_lower && d.limit.lower >= d.limit.upper)
    status = hk_detector_fail(error, size, "%s: must be below %s%s", "lower", "limit", "");
  if (status < 0)
    return status;
  DEFAULT(KEY_WINDOW, limit.window, 12 * 3600000000000);
  DEFAULT(KEY_HORIZON, limit.horizon, 2 * d.limit.window);
  DEFAULT(KEY_CONFIDENCE, limit.confidence, 4);
  DEFAULT(KEY_HOLD, hold, 3);
  d.limit.window -= d.limit.window % HK_LIMIT_BLOCKS;
  status = check_limit_times(&d, error, size);
  d.window = HK_LIMIT_BLOCKS; /* every detector has a window in samples: here it is the number of blocks */
  d.stride = d.baseline = 1;
  if (d.alert != HK_ALERT_OFF) {
    d.alert = HK_ALERT_FIXED;
    d.threshold = 0.5f; /* the score when the limit is as far away as the horizon */
  }
  if (status == 0)
    *out = d;
  return status;
}

static int finish_graph(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector d = draft->detector;
  char value[40], allowed[80];
  int status = refuse_others(draft, not_of_graph, "algorithm = graph", error, size);
  if (status < 0)
    return status;
  DEFAULT(KEY_FILL, fill, HK_FILL_HOLD);
  DEFAULT(KEY_WINDOW, search, 1);
  DEFAULT(KEY_RESIDENT, resident, larger(1500, smaller(15 * d.window, HK_RESIDENT_MAX)));
  if (d.search)
    d.window = d.resident / HK_GRAPH_WINDOWS; /* the widest that may be determined */
  DEFAULT(KEY_NEIGHBOURS, neighbours, 3);
  DEFAULT(KEY_SHORTEST, shortest, HK_GRAPH_SHORTEST);
  DEFAULT(KEY_LEVEL, level, 0);
  DEFAULT(KEY_ROUGHNESS, roughness, 0);
  DEFAULT(KEY_LOCALITY, locality, 0);
  DEFAULT(KEY_STRIDE, stride, d.search ? 0 : d.window / 4);
  DEFAULT(KEY_MAX_FILL, max_fill, 3);
  DEFAULT(KEY_HOLD, hold, 1);
  DEFAULT(KEY_COOLDOWN, cooldown, 0);
  d.baseline = 1;
  status = finish_alert(draft, &d, "algorithm = graph", error, size);
  if (status < 0)
    return status;
  if (d.resident > HK_RESIDENT_MAX) {
    snprintf(value, sizeof value, "%u", d.resident);
    snprintf(allowed, sizeof allowed, "at most %d for algorithm = graph", HK_RESIDENT_MAX);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  if (d.window < HK_GRAPH_WINDOW_MIN || HK_GRAPH_WINDOWS * d.window > HK_RESIDENT_MAX) {
    snprintf(value, sizeof value, "%u", d.window);
    snprintf(allowed, sizeof allowed, "from %d to %d for algorithm = graph", HK_GRAPH_WINDOW_MIN,
             HK_RESIDENT_MAX / HK_GRAPH_WINDOWS);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "window", value, allowed);
  }
  if (d.resident < HK_GRAPH_WINDOWS * d.window) {
    snprintf(value, sizeof value, "%u", d.resident);
    snprintf(allowed, sizeof allowed, "at least %d windows, %u", HK_GRAPH_WINDOWS, HK_GRAPH_WINDOWS * d.window);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  status = check_cooldown(&d, error, size);
  if (status == 0)
    *out = d;
  return status;
}

/* Checks the keys of ika and svd. */
static int check_sst(const struct hk_detector *d, char *error, size_t size)
{
  const uint32_t span = hk_detector_span(d);
  char value[40], allowed[80];
  if (d->rank > d->window - 1) {
    snprintf(value, sizeof value, "%u", d->rank);
    snprintf(allowed, sizeof allowed, "below the window, %u", d->window);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "rank", value, allowed);
  }
  if (d->krylov <= d->rank || d->krylov > d->window) {
    snprintf(value, sizeof value, "%u", d->krylov);
    snprintf(allowed, sizeof allowed, "from rank + 1 (%u) to %u", d->rank + 1, smaller(HK_KRYLOV_MAX, d->window));
    return hk_detector_fail(error, size, "%s = %s: must be %s", "krylov", value, allowed);
  }
  if (d->products % 2 && (d->present == HK_PRESENT_POWER || d->operator_ == HK_OPERATOR_GRAM)) {
    snprintf(value, sizeof value, "%u", d->products);
    return hk_detector_fail(error, size, "%s = %s: must be even for %s", "products", value,
                            "present = power and operator = gram");
  }
  if (d->provisional && d->window <= HK_PROVISIONAL_WINDOW) {
    snprintf(value, sizeof value, "%u", d->window);
    snprintf(allowed, sizeof allowed, "over %d for provisional = yes", HK_PROVISIONAL_WINDOW);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "window", value, allowed);
  }
  if (d->cooldown > span) {
    snprintf(value, sizeof value, "%u", d->cooldown);
    snprintf(allowed, sizeof allowed, "at most one span, %u samples", span);
    return hk_detector_fail(error, size, "%s = %s: must be %s", "cooldown", value, allowed);
  }
  return 0;
}

static int finish_sst(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  for (enum hk_key k = 0; k < KEYS; k++) {
    if (draft->given & not_of_sst & KEY_BIT(k))
      return hk_detector_fail(error, size, "%s: a key of %s alone%s", hk_detector_key_name(k),
                              of_limit_alone & KEY_BIT(k) ? "algorithm = limit"
                              : k == KEY_CHANNELS         ? "algorithm = novelty"
                                                          : "algorithm = graph",
                              "");
  }
  struct hk_detector d = draft->detector;
  const enum hk_preset preset = draft->preset;
  const bool paper = preset == PRESET_PAPER, precise = preset == PRESET_PRECISE;
  if (d.search)
    return hk_detector_fail(error, size, "%s = %s: a window is found for %s alone, give a number", "window", "auto",
                            "algorithm = graph");
  DEFAULT(KEY_ALGORITHM, algorithm, HK_ALGORITHM_IKA);
  if (draft->given & KEY_BIT(KEY_SOLVER) && d.algorithm != HK_ALGORITHM_SVD)
    return hk_detector_fail(error, size, "%s: a key of %s alone%s", "solver", "algorithm = svd", "");
  DEFAULT(KEY_PRESENT, present, paper ? HK_PRESENT_POWER : HK_PRESENT_RITZ);
  DEFAULT(KEY_OPERATOR, operator_, HK_OPERATOR_HANKEL);
  DEFAULT(KEY_SCALE, scale, paper ? HK_SCALE_NONE : HK_SCALE_BASELINE);
  DEFAULT(KEY_FILL, fill, HK_FILL_HOLD);
  DEFAULT(KEY_REORTHOGONALISE, reorthogonalise, !paper);
  DEFAULT(KEY_WINDOW, window, 96);
  DEFAULT(KEY_GAP, gap, paper ? 2 * d.window + 7 : d.window);
  DEFAULT(KEY_RANK, rank, smaller(3, d.window - 1));
  const uint32_t steps = paper ? (d.rank == 1 ? 2 : 2 * d.rank - d.rank % 2) : precise ? 16 : 4 * d.rank - 2;
  DEFAULT(KEY_KRYLOV, krylov, smaller(smaller(steps > d.rank ? steps : d.rank + 1, HK_KRYLOV_MAX), d.window));
  DEFAULT(KEY_PRODUCTS, products, precise ? 8 : 6);
  DEFAULT(KEY_STRIDE, stride, 1);
  DEFAULT(KEY_MAX_FILL, max_fill, 3);
  DEFAULT(KEY_INTERVAL, interval, 0);
  DEFAULT(KEY_SILENT, silent, 0);
  DEFAULT(KEY_ALERT, alert, HK_ALERT_ADAPTIVE);
  DEFAULT(KEY_HOLD, hold, 1);
  DEFAULT(KEY_COOLDOWN, cooldown, d.window);
  DEFAULT(KEY_BASELINE, baseline, 4);
  DEFAULT(KEY_MIN_SCORE, min_score, 0.05f);
  DEFAULT(KEY_CLEAR, clear, 0.7f);
  DEFAULT(KEY_SIGNAL, signal, 2);
  DEFAULT(KEY_FALSE_ALARMS, false_alarms, 50);
  const int status = check_sst(&d, error, size);
  if (status == 0)
    *out = d;
  return status;
}
#undef DEFAULT

int hk_detector_finish(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  const uint8_t algorithm = draft->given & KEY_BIT(KEY_ALGORITHM) ? draft->detector.algorithm : HK_ALGORITHM_IKA;
  if (algorithm != HK_ALGORITHM_LIMIT && draft->detector.limit.window > 0)
    return hk_detector_fail(error, size, "%s: a duration is for %s alone, give a number of samples%s", "window",
                            "algorithm = limit", "");
  switch (algorithm) {
  case HK_ALGORITHM_GRAPH:
    return finish_graph(draft, out, error, size);
  case HK_ALGORITHM_SHIFT:
    return finish_shift(draft, out, error, size);
  case HK_ALGORITHM_NOVELTY:
    return finish_novelty(draft, out, error, size);
  case HK_ALGORITHM_LIMIT:
    return finish_limit(draft, out, error, size);
  default:
    return finish_sst(draft, out, error, size);
  }
}

const char *hk_detector_key_text(const struct hk_detector *d, uint32_t *next, char *value, size_t size)
{
  const struct hk_detector_draft all = { .detector = *d, .given = UINT64_MAX };
  const uint64_t strange = hk_detector_strange(&all, d->algorithm);
  enum hk_key before = *next > 0 ? hk_detector_field(d, *next - 1, value, size) : KEYS, key;
  for (; (key = hk_detector_field(d, *next, value, size)) != KEYS; before = key) {
    (*next)++;
    if (key == before || (strange & KEY_BIT(key) && key != KEY_ALERT && !(key == KEY_WINDOW && d->search)))
      continue;
    if ((key == KEY_LIMIT && !d->limit.has_upper) || (key == KEY_LOWER && !d->limit.has_lower))
      continue;
    if (key == KEY_FALSE_ALARMS && d->alert != HK_ALERT_ADAPTIVE && d->false_alarms <= 0)
      continue;
    return hk_detector_key_name(key);
  }
  return NULL;
}
