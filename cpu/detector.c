/* Parsing, presets, defaults and limits of detectors. One table names the keys; everything else follows from it. */
#include "cpu/detector_parts.h"
#include "cpu/duration.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum key {
  KEY_ALGORITHM,
  KEY_PRESENT,
  KEY_OPERATOR,
  KEY_SCALE,
  KEY_FILL,
  KEY_PRESET,
  KEY_SOLVER,
  KEY_RATE,
  KEY_REORTHOGONALISE, /* one of a few words */
  KEY_WINDOW,
  KEY_GAP,
  KEY_RANK,
  KEY_KRYLOV,
  KEY_PRODUCTS,
  KEY_STRIDE,
  KEY_MAX_FILL,
  KEY_HOLD,
  KEY_COOLDOWN,
  KEY_BASELINE,
  KEY_RESIDENT,
  KEY_NEIGHBOURS,
  KEY_SHORTEST, /* whole numbers */
  KEY_INTERVAL,
  KEY_SILENT, /* durations */
  KEY_ALERT,
  KEY_MIN_SCORE,
  KEY_CLEAR,
  KEY_SIGNAL,
  KEY_LEVEL,
  KEY_ROUGHNESS,
  KEY_LOCALITY,
  KEY_FALSE_ALARMS, /* reals */
  KEYS,
};
_Static_assert(KEYS <= 32, "given: a bit for each key");

enum preset { PRESET_DEFAULT, PRESET_PAPER, PRESET_PRECISE };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Words of a key; the index is the value. */
static const char *const words[][6] = {
  [KEY_ALGORITHM] = { "ika", "svd", "graph", "shift", "novelty" },
  [KEY_PRESENT] = { "ritz", "power" },
  [KEY_OPERATOR] = { "hankel", "gram" },
  [KEY_SCALE] = { "baseline", "none", "window" },
  [KEY_FILL] = { "hold", "linear" },
  [KEY_PRESET] = { "default", "paper", "precise" },
  [KEY_SOLVER] = { "krylov", "full" },
  [KEY_RATE] = { "no", "yes" },
  [KEY_REORTHOGONALISE] = { "no", "yes" },
};

/* Name and range of each key; where max is 0 the key is no number. */
static const struct {
  const char *name;
  double min, max;
} keys[KEYS] = {
  [KEY_ALGORITHM] = { "algorithm", 0, 0 },
  [KEY_PRESENT] = { "present", 0, 0 },
  [KEY_OPERATOR] = { "operator", 0, 0 },
  [KEY_SCALE] = { "scale", 0, 0 },
  [KEY_FILL] = { "fill", 0, 0 },
  [KEY_PRESET] = { "preset", 0, 0 },
  [KEY_SOLVER] = { "solver", 0, 0 },
  [KEY_RATE] = { "rate", 0, 0 },
  [KEY_REORTHOGONALISE] = { "reorthogonalise", 0, 0 },
  [KEY_WINDOW] = { "window", HK_WINDOW_MIN, HK_WINDOW_MAX },
  [KEY_GAP] = { "gap", 1, HK_GAP_MAX },
  [KEY_RANK] = { "rank", 1, HK_RANK_MAX },
  [KEY_KRYLOV] = { "krylov", 2, HK_KRYLOV_MAX },
  [KEY_PRODUCTS] = { "products", 1, HK_PRODUCTS_MAX },
  [KEY_STRIDE] = { "stride", 1, HK_STRIDE_MAX },
  [KEY_MAX_FILL] = { "max_fill", 0, HK_FILL_MAX },
  [KEY_HOLD] = { "hold", 1, 1000000 },
  [KEY_COOLDOWN] = { "cooldown", 0, HK_SPAN_MAX },
  [KEY_BASELINE] = { "baseline", 1, 1000 },
  [KEY_RESIDENT] = { "resident", HK_RESIDENT_MIN, HK_NOVELTY_RESIDENT_MAX },
  [KEY_NEIGHBOURS] = { "neighbours", 1, HK_NEIGHBOURS_MAX },
  [KEY_SHORTEST] = { "shortest", HK_GRAPH_SHORTEST_MIN, HK_GRAPH_SHORTEST },
  [KEY_INTERVAL] = { "interval", 0, 0 },
  [KEY_SILENT] = { "silent", 0, 0 },
  [KEY_ALERT] = { "alert", 0, 1 },
  [KEY_MIN_SCORE] = { "min_score", 0, 1 },
  [KEY_CLEAR] = { "clear", 0, 1 },
  [KEY_SIGNAL] = { "signal", 0, 1000 },
  [KEY_LEVEL] = { "level", 0, 1000 },
  [KEY_ROUGHNESS] = { "roughness", 0, 100 },
  [KEY_LOCALITY] = { "locality", 0, 100 },
  [KEY_FALSE_ALARMS] = { "false_alarms", 0.001, 100000 } /* log(1 - p) of a block keeps its digits */,
};

static int fail(char *error, size_t size, const char *format, const char *key, const char *value, const char *allowed)
{
  if (size > 0)
    snprintf(error, size, format, key, value, allowed);
  return -EINVAL;
}

static int set_word(uint8_t *field, enum key key, const char *value, char *error, size_t size)
{
  char allowed[64] = "";
  for (size_t i = 0; i < COUNT(words[key]) && words[key][i]; i++) {
    if (strcmp(value, words[key][i]) == 0) {
      *field = (uint8_t)i;
      return 0;
    }
    snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s", i ? ", " : "", words[key][i]);
  }
  return fail(error, size, "%s = %s: not one of %s", keys[key].name, value, allowed);
}

static int set_number(double *out, enum key key, const char *value, bool whole, char *error, size_t size)
{
  char *end, allowed[80];
  errno = 0;
  const double number = strtod(value, &end);
  const bool good = end != value && *end == 0 && errno == 0 && number >= keys[key].min && number <= keys[key].max &&
                    (!whole || number == floor(number));
  if (good) {
    *out = number;
    return 0;
  }
  snprintf(allowed, sizeof allowed, "%s from %.10g to %.10g", whole ? "a whole number" : "a number", keys[key].min,
           keys[key].max);
  return fail(error, size, "%s = %s: not %s", keys[key].name, value, allowed);
}

static int set_duration(int64_t *out, enum key key, const char *value, const char *word, int64_t word_means, char *error,
                        size_t size)
{
  if (strcmp(value, "auto") == 0) {
    *out = 0;
    return 0;
  }
  if (word && strcmp(value, word) == 0) {
    *out = word_means;
    return 0;
  }
  if (hk_duration_parse(value, out) == 0)
    return 0;
  return fail(error, size, "%s = %s: not %s", keys[key].name, value,
              word ? "auto, off, or a duration such as 250ms or 5m" : "auto or a duration such as 250ms or 5m");
}

static int set_alert(struct hk_detector *d, const char *value, char *error, size_t size)
{
  double threshold;
  if (strcmp(value, "adaptive") == 0) {
    d->alert = HK_ALERT_ADAPTIVE;
  } else if (strcmp(value, "off") == 0) {
    d->alert = HK_ALERT_OFF;
  } else if (set_number(&threshold, KEY_ALERT, value, false, error, size) == 0 && threshold > 0) {
    d->alert = HK_ALERT_FIXED;
    d->threshold = (float)threshold;
  } else {
    return fail(error, size, "%s = %s: not %s", keys[KEY_ALERT].name, value, "adaptive, off, or a score over 0 and at most 1");
  }
  return 0;
}

int hk_detector_set(struct hk_detector_draft *draft, const char *key, const char *value, char *error, size_t size)
{
  struct hk_detector *d = &draft->detector;
  uint8_t *const word_field[] = {
    [KEY_ALGORITHM] = &d->algorithm, [KEY_PRESENT] = &d->present, [KEY_OPERATOR] = &d->operator_,
    [KEY_SCALE] = &d->scale,         [KEY_FILL] = &d->fill,       [KEY_PRESET] = &draft->preset,
    [KEY_RATE] = &d->rate,           [KEY_SOLVER] = &d->solver,   [KEY_REORTHOGONALISE] = &d->reorthogonalise,
  };
  uint32_t *const whole_field[KEYS] = {
    [KEY_WINDOW] = &d->window,     [KEY_GAP] = &d->gap,           [KEY_RANK] = &d->rank,
    [KEY_KRYLOV] = &d->krylov,     [KEY_PRODUCTS] = &d->products, [KEY_STRIDE] = &d->stride,
    [KEY_MAX_FILL] = &d->max_fill, [KEY_HOLD] = &d->hold,         [KEY_COOLDOWN] = &d->cooldown,
    [KEY_BASELINE] = &d->baseline, [KEY_RESIDENT] = &d->resident, [KEY_NEIGHBOURS] = &d->neighbours,
    [KEY_SHORTEST] = &d->shortest,
  };
  float *const real_field[KEYS] = {
    [KEY_MIN_SCORE] = &d->min_score,
    [KEY_CLEAR] = &d->clear,
    [KEY_SIGNAL] = &d->signal,
    [KEY_LEVEL] = &d->level,
    [KEY_ROUGHNESS] = &d->roughness,
    [KEY_LOCALITY] = &d->locality,
    [KEY_FALSE_ALARMS] = &d->false_alarms,
  };
  enum key k = 0;
  while (k < KEYS && strcmp(key, keys[k].name) != 0)
    k++;
  if (k == KEYS)
    return fail(error, size, "%s: no such key of a detector%s%s", key, "", "");
  if (draft->given & 1u << k)
    return fail(error, size, "%s: given twice%s%s", key, "", "");
  int status;
  double number = 0;
  if (k == KEY_WINDOW && strcmp(value, "auto") == 0)
    status = 0;
  else if (k <= KEY_REORTHOGONALISE)
    status = set_word(word_field[k], k, value, error, size);
  else if (whole_field[k])
    status = set_number(&number, k, value, true, error, size);
  else if (k == KEY_INTERVAL)
    status = set_duration(&d->interval, k, value, NULL, 0, error, size);
  else if (k == KEY_SILENT)
    status = set_duration(&d->silent, k, value, "off", -1, error, size);
  else if (k == KEY_ALERT)
    status = set_alert(d, value, error, size);
  else
    status = set_number(&number, k, value, false, error, size);
  if (status < 0)
    return status;
  if (k == KEY_WINDOW)
    d->search = number == 0; /* auto: finish says how wide it may be */
  if (whole_field[k])
    *whole_field[k] = (uint32_t)number;
  if (real_field[k]) {
    if (number <= 0 && k != KEY_SIGNAL && k != KEY_MIN_SCORE && k != KEY_LEVEL && k != KEY_ROUGHNESS && k != KEY_LOCALITY)
      return fail(error, size, "%s = %s: must be over 0%s", key, value, "");
    *real_field[k] = (float)number;
  }
  draft->given |= 1u << k;
  return 0;
}

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
    if (!(draft->given & 1u << (key)))                                                                                           \
      d.field = (value);                                                                                                         \
  } while (0)

/* Keys that say nothing of a graph, and keys that say something of nothing else. */
static const uint32_t not_of_graph = 1u << KEY_PRESENT | 1u << KEY_OPERATOR | 1u << KEY_SCALE | 1u << KEY_SOLVER |
                                     1u << KEY_REORTHOGONALISE | 1u << KEY_GAP | 1u << KEY_RANK | 1u << KEY_KRYLOV |
                                     1u << KEY_PRODUCTS | 1u << KEY_BASELINE | 1u << KEY_MIN_SCORE | 1u << KEY_CLEAR |
                                     1u << KEY_SIGNAL | 1u << KEY_FALSE_ALARMS;
static const uint32_t of_graph_alone =
    1u << KEY_RESIDENT | 1u << KEY_NEIGHBOURS | 1u << KEY_LEVEL | 1u << KEY_ROUGHNESS | 1u << KEY_SHORTEST | 1u << KEY_LOCALITY;

static const uint32_t not_of_shift = (not_of_graph & ~(1u << KEY_BASELINE)) | of_graph_alone;
static const uint32_t not_of_novelty = ~(1u << KEY_ALGORITHM | 1u << KEY_PRESET | 1u << KEY_RESIDENT | 1u << KEY_INTERVAL |
                                         1u << KEY_SILENT | 1u << KEY_ALERT | 1u << KEY_FALSE_ALARMS | 1u << KEY_RATE);

uint32_t hk_detector_strange(const struct hk_detector_draft *draft, uint8_t algorithm)
{
  const struct hk_detector *d = &draft->detector;
  const bool sst = algorithm == HK_ALGORITHM_IKA || algorithm == HK_ALGORITHM_SVD;
  uint32_t strange = algorithm == HK_ALGORITHM_GRAPH     ? not_of_graph
                     : algorithm == HK_ALGORITHM_SHIFT   ? not_of_shift
                     : algorithm == HK_ALGORITHM_NOVELTY ? not_of_novelty
                                                         : of_graph_alone;
  if (!sst)
    strange |= 1u << KEY_PRESET;
  if (!sst && d->alert == HK_ALERT_ADAPTIVE)
    strange |= 1u << KEY_ALERT;
  if (algorithm != HK_ALGORITHM_SVD)
    strange |= 1u << KEY_SOLVER;
  if (algorithm != HK_ALGORITHM_GRAPH && d->search)
    strange |= 1u << KEY_WINDOW;
  return draft->given & strange;
}

/* Refuses keys that say nothing of an algorithm. */
static int refuse_others(const struct hk_detector_draft *draft, uint32_t others, const char *algorithm, char *error, size_t size)
{
  for (enum key k = 0; k < KEYS; k++) {
    if (draft->given & others & 1u << k)
      return fail(error, size, "%s: says nothing of %s, leave it out%s", keys[k].name, algorithm, "");
  }
  if (draft->preset != PRESET_DEFAULT)
    return fail(error, size, "%s = %s: says nothing of %s, leave it out", "preset", words[KEY_PRESET][draft->preset], algorithm);
  return 0;
}

/* The alert of algorithms that learn no threshold: a fixed one. */
static int finish_alert(const struct hk_detector_draft *draft, struct hk_detector *d, const char *algorithm, char *error,
                        size_t size)
{
  if (!(draft->given & 1u << KEY_ALERT)) {
    d->alert = HK_ALERT_FIXED;
    d->threshold = 0.5f;
  }
  if (d->alert == HK_ALERT_ADAPTIVE)
    return fail(error, size, "alert = adaptive: not for %s%s, which learns no threshold: give off, or a score such as 0.5%s",
                algorithm, "", "");
  if (d->alert == HK_ALERT_FIXED && d->threshold >= 1)
    return fail(error, size, "alert = 1: must be below 1 for %s%s%s", algorithm, "", "");
  return 0;
}

static int check_cooldown(const struct hk_detector *d, char *error, size_t size)
{
  char value[40], allowed[80];
  if (d->cooldown <= hk_detector_span(d))
    return 0;
  snprintf(value, sizeof value, "%u", d->cooldown);
  snprintf(allowed, sizeof allowed, "at most the samples kept, %u", hk_detector_span(d));
  return fail(error, size, "%s = %s: must be %s", "cooldown", value, allowed);
}

static int finish_shift(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  struct hk_detector d = draft->detector;
  int status = refuse_others(draft, not_of_shift, "algorithm = shift", error, size);
  if (status == 0 && d.search)
    status = fail(error, size, "%s = %s: a window is found for %s alone, give a number", "window", "auto", "algorithm = graph");
  DEFAULT(KEY_WINDOW, window, 20);
  DEFAULT(KEY_STRIDE, stride, larger(1, d.window / 20));
  DEFAULT(KEY_MAX_FILL, max_fill, 3);
  DEFAULT(KEY_HOLD, hold, 1);
  DEFAULT(KEY_COOLDOWN, cooldown, 0);
  DEFAULT(KEY_BASELINE, baseline, 25);
  if (status == 0)
    status = finish_alert(draft, &d, "algorithm = shift", error, size);
  if (status == 0 && d.stride > d.window)
    status = fail(error, size, "%s: must be at most the window for %s%s", "stride", "algorithm = shift", "");
  if (status == 0)
    status = check_cooldown(&d, error, size);
  if (status == 0)
    *out = d;
  return status;
}

/* The S that is exceeded by chance at a wanted rate a point: there are three channels and a block has HK_NOVELTY_BLOCK points. */
static double novelty_threshold(double rate)
{
  return log10(3 / (HK_NOVELTY_BLOCK * rate));
}

/* The threshold of a stated rate of false alarms, if one was stated. */
static int novelty_alarms(const struct hk_detector_draft *draft, struct hk_detector *d, char *error, size_t size)
{
  char value[40], allowed[120];
  if (!(draft->given & 1u << KEY_FALSE_ALARMS))
    return 0;
  if (draft->given & 1u << KEY_ALERT && d->alert == HK_ALERT_FIXED)
    return fail(error, size, "%s: says the same as alert of %s, give one of the two%s", "false_alarms", "algorithm = novelty",
                "");
  if (!(d->false_alarms >= HK_NOVELTY_ALARMS_LEAST && d->false_alarms <= HK_NOVELTY_ALARMS_MOST)) {
    snprintf(value, sizeof value, "%.10g", (double)d->false_alarms);
    snprintf(allowed, sizeof allowed,
             "from %d to %d a million scores for algorithm = novelty: no lower rate held in measurements",
             HK_NOVELTY_ALARMS_LEAST, HK_NOVELTY_ALARMS_MOST);
    return fail(error, size, "%s = %s: must be %s", "false_alarms", value, allowed);
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
  if (status == 0)
    status = novelty_alarms(draft, &d, error, size);
  if (status < 0)
    return status;
  DEFAULT(KEY_RESIDENT, resident, HK_NOVELTY_RESIDENT_MAX);
  if (d.resident < HK_NOVELTY_RESIDENT_MIN) {
    snprintf(value, sizeof value, "%u", d.resident);
    snprintf(allowed, sizeof allowed, "from %d to %d for algorithm = novelty", HK_NOVELTY_RESIDENT_MIN, HK_NOVELTY_RESIDENT_MAX);
    return fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  d.window = HK_NOVELTY_SHAPE_REACH; /* no key of novelty, but every detector has one */
  d.stride = d.hold = d.baseline = 1;
  *out = d;
  return 0;
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
    d.window = d.resident / HK_GRAPH_WINDOWS; /* the widest that may be found */
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
    return fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  if (d.window < HK_GRAPH_WINDOW_MIN || HK_GRAPH_WINDOWS * d.window > HK_RESIDENT_MAX) {
    snprintf(value, sizeof value, "%u", d.window);
    snprintf(allowed, sizeof allowed, "from %d to %d for algorithm = graph", HK_GRAPH_WINDOW_MIN,
             HK_RESIDENT_MAX / HK_GRAPH_WINDOWS);
    return fail(error, size, "%s = %s: must be %s", "window", value, allowed);
  }
  if (d.resident < HK_GRAPH_WINDOWS * d.window) {
    snprintf(value, sizeof value, "%u", d.resident);
    snprintf(allowed, sizeof allowed, "at least %d windows, %u", HK_GRAPH_WINDOWS, HK_GRAPH_WINDOWS * d.window);
    return fail(error, size, "%s = %s: must be %s", "resident", value, allowed);
  }
  status = check_cooldown(&d, error, size);
  if (status == 0)
    *out = d;
  return status;
}

int hk_detector_finish(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size)
{
  if (draft->given & 1u << KEY_ALGORITHM && draft->detector.algorithm == HK_ALGORITHM_GRAPH)
    return finish_graph(draft, out, error, size);
  if (draft->given & 1u << KEY_ALGORITHM && draft->detector.algorithm == HK_ALGORITHM_SHIFT)
    return finish_shift(draft, out, error, size);
  if (draft->given & 1u << KEY_ALGORITHM && draft->detector.algorithm == HK_ALGORITHM_NOVELTY)
    return finish_novelty(draft, out, error, size);
  for (enum key k = 0; k < KEYS; k++) {
    if (draft->given & of_graph_alone & 1u << k)
      return fail(error, size, "%s: a key of %s alone%s", keys[k].name, "algorithm = graph", "");
  }
  struct hk_detector d = draft->detector;
  const enum preset preset = draft->preset;
  const bool paper = preset == PRESET_PAPER, precise = preset == PRESET_PRECISE;
  if (d.search)
    return fail(error, size, "%s = %s: a window is found for %s alone, give a number", "window", "auto", "algorithm = graph");
  DEFAULT(KEY_ALGORITHM, algorithm, HK_ALGORITHM_IKA);
  if (draft->given & 1u << KEY_SOLVER && d.algorithm != HK_ALGORITHM_SVD)
    return fail(error, size, "%s: a key of %s alone%s", "solver", "algorithm = svd", "");
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
#undef DEFAULT
  const uint32_t span = hk_detector_span(&d);
  char value[40], allowed[80];
  if (d.rank > d.window - 1) {
    snprintf(value, sizeof value, "%u", d.rank);
    snprintf(allowed, sizeof allowed, "below the window, %u", d.window);
    return fail(error, size, "%s = %s: must be %s", "rank", value, allowed);
  }
  if (d.krylov <= d.rank || d.krylov > d.window) {
    snprintf(value, sizeof value, "%u", d.krylov);
    snprintf(allowed, sizeof allowed, "from rank + 1 (%u) to %u", d.rank + 1, smaller(HK_KRYLOV_MAX, d.window));
    return fail(error, size, "%s = %s: must be %s", "krylov", value, allowed);
  }
  if (d.products % 2 && (d.present == HK_PRESENT_POWER || d.operator_ == HK_OPERATOR_GRAM)) {
    snprintf(value, sizeof value, "%u", d.products);
    return fail(error, size, "%s = %s: must be even for %s", "products", value, "present = power and operator = gram");
  }
  if (d.cooldown > span) {
    snprintf(value, sizeof value, "%u", d.cooldown);
    snprintf(allowed, sizeof allowed, "at most one span, %u samples", span);
    return fail(error, size, "%s = %s: must be %s", "cooldown", value, allowed);
  }
  *out = d;
  return 0;
}

const char *hk_algorithm_name(uint8_t algorithm)
{
  return algorithm <= HK_ALGORITHM_LAST ? words[KEY_ALGORITHM][algorithm] : "?";
}

/* Where a key's value is kept; some are kept in two places. */
#define FIELD(key, field)                                                                                                        \
  {                                                                                                                              \
    key, offsetof(struct hk_detector, field), sizeof((struct hk_detector *)0)->field                                             \
  }
static const struct {
  enum key key;
  size_t offset, size;
} fields[] = {
  FIELD(KEY_ALGORITHM, algorithm),
  FIELD(KEY_PRESENT, present),
  FIELD(KEY_OPERATOR, operator_),
  FIELD(KEY_SCALE, scale),
  FIELD(KEY_RATE, rate),
  FIELD(KEY_FILL, fill),
  FIELD(KEY_REORTHOGONALISE, reorthogonalise),
  FIELD(KEY_SOLVER, solver),
  FIELD(KEY_WINDOW, window),
  FIELD(KEY_WINDOW, search),
  FIELD(KEY_GAP, gap),
  FIELD(KEY_RANK, rank),
  FIELD(KEY_KRYLOV, krylov),
  FIELD(KEY_PRODUCTS, products),
  FIELD(KEY_STRIDE, stride),
  FIELD(KEY_MAX_FILL, max_fill),
  FIELD(KEY_HOLD, hold),
  FIELD(KEY_COOLDOWN, cooldown),
  FIELD(KEY_BASELINE, baseline),
  FIELD(KEY_RESIDENT, resident),
  FIELD(KEY_NEIGHBOURS, neighbours),
  FIELD(KEY_SHORTEST, shortest),
  FIELD(KEY_INTERVAL, interval),
  FIELD(KEY_SILENT, silent),
  FIELD(KEY_ALERT, alert),
  FIELD(KEY_ALERT, threshold),
  FIELD(KEY_MIN_SCORE, min_score),
  FIELD(KEY_CLEAR, clear),
  FIELD(KEY_SIGNAL, signal),
  FIELD(KEY_LEVEL, level),
  FIELD(KEY_ROUGHNESS, roughness),
  FIELD(KEY_LOCALITY, locality),
  FIELD(KEY_FALSE_ALARMS, false_alarms),
};
#undef FIELD

void hk_detector_differences(const struct hk_detector *a, const struct hk_detector *b, char *out, size_t size)
{
  enum key last = KEYS;
  size_t at = 0;
  out[0] = 0;
  for (size_t i = 0; i < COUNT(fields) && at < size; i++) {
    if (fields[i].key == last ||
        memcmp((const char *)a + fields[i].offset, (const char *)b + fields[i].offset, fields[i].size) == 0)
      continue;
    last = fields[i].key;
    at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", keys[last].name);
  }
}

void hk_detector_take(struct hk_detector_draft *to, const struct hk_detector_draft *from, uint32_t keys_taken)
{
  for (size_t i = 0; i < COUNT(fields); i++)
    if (keys_taken & 1u << fields[i].key)
      memcpy((char *)&to->detector + fields[i].offset, (const char *)&from->detector + fields[i].offset, fields[i].size);
  if (keys_taken & 1u << KEY_PRESET)
    to->preset = from->preset;
  to->given |= keys_taken;
}

const char *hk_detector_key(uint32_t keys_one_of)
{
  return keys[__builtin_ctz(keys_one_of)].name;
}

static void write_duration(int64_t ns, char *out, size_t size)
{
  static const struct {
    const char *name;
    int64_t ns;
  } units[] = {
    { "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }
  };
  size_t i = 0;
  while (ns % units[i].ns != 0)
    i++;
  snprintf(out, size, "%lld%s", (long long)(ns / units[i].ns), units[i].name);
}

/* A field's value, as a configuration has it. */
static void write_key(const struct hk_detector *d, enum key key, const void *field, char *out, size_t size)
{
  uint32_t whole;
  float real;
  int64_t duration;
  memcpy(&whole, field, sizeof whole);
  memcpy(&real, field, sizeof real);
  if (key == KEY_INTERVAL || key == KEY_SILENT)
    memcpy(&duration, field, sizeof duration);
  else
    duration = 0;
  if (key == KEY_ALERT && d->alert != HK_ALERT_FIXED)
    snprintf(out, size, "%s", d->alert == HK_ALERT_OFF ? "off" : "adaptive");
  else if (key == KEY_ALERT)
    snprintf(out, size, "%.6g", (double)d->threshold);
  else if (key <= KEY_REORTHOGONALISE)
    snprintf(out, size, "%s", words[key][*(const uint8_t *)field]);
  else if ((key == KEY_WINDOW && d->search) || (key == KEY_STRIDE && whole == 0))
    snprintf(out, size, "auto");
  else if (key < KEY_INTERVAL)
    snprintf(out, size, "%u", whole);
  else if (key <= KEY_SILENT && duration <= 0)
    snprintf(out, size, "%s", duration < 0 ? "off" : "auto");
  else if (key <= KEY_SILENT)
    write_duration(duration, out, size);
  else
    snprintf(out, size, "%.6g", (double)real);
}

const char *hk_detector_key_text(const struct hk_detector *d, uint32_t *next, char *value, size_t size)
{
  const struct hk_detector_draft all = { .detector = *d, .given = UINT32_MAX };
  const uint32_t strange = hk_detector_strange(&all, d->algorithm);
  while (*next < COUNT(fields)) {
    const uint32_t i = (*next)++;
    const enum key key = fields[i].key;
    const bool again = i > 0 && fields[i - 1].key == key;
    if (again || (strange & 1u << key && key != KEY_ALERT && !(key == KEY_WINDOW && d->search)))
      continue;
    if (key == KEY_FALSE_ALARMS && d->alert != HK_ALERT_ADAPTIVE && d->false_alarms <= 0)
      continue;
    write_key(d, key, (const char *)d + fields[i].offset, value, size);
    return keys[key].name;
  }
  return NULL;
}

int hk_algorithm_find(const char *name)
{
  for (int i = 0; i <= HK_ALGORITHM_LAST; i++)
    if (strcmp(name, words[KEY_ALGORITHM][i]) == 0)
      return i;
  return -EINVAL;
}
