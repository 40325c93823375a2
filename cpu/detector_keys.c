#include "cpu/detector_keys.h"
#include "cpu/duration.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Words of a key; the index is the value. */
static const char *const words[][6] = {
  [KEY_ALGORITHM] = { "ika", "svd", "graph", "shift", "novelty", "limit" },
  [KEY_PRESENT] = { "ritz", "power" },
  [KEY_OPERATOR] = { "hankel", "gram" },
  [KEY_SCALE] = { "baseline", "none", "window" },
  [KEY_FILL] = { "hold", "linear" },
  [KEY_PRESET] = { "default", "paper", "precise" },
  [KEY_SOLVER] = { "krylov", "full" },
  [KEY_RATE] = { "no", "yes", "auto" },
  [KEY_PROVISIONAL] = { "no", "yes" },
  [KEY_CHANNELS] = { "all", "value" },
  [KEY_REORTHOGONALISE] = { "no", "yes" },
};

/* Name and range of each key; max = 0: the key is not a number. */
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
  [KEY_PROVISIONAL] = { "provisional", 0, 0 },
  [KEY_CHANNELS] = { "channels", 0, 0 },
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
  [KEY_HORIZON] = { "horizon", 0, 0 },
  [KEY_ALERT] = { "alert", 0, 1 },
  [KEY_MIN_SCORE] = { "min_score", 0, 1 },
  [KEY_CLEAR] = { "clear", 0, 1 },
  [KEY_SIGNAL] = { "signal", 0, 1000 },
  [KEY_LEVEL] = { "level", 0, 1000 },
  [KEY_ROUGHNESS] = { "roughness", 0, 100 },
  [KEY_LOCALITY] = { "locality", 0, 100 },
  [KEY_FALSE_ALARMS] = { "false_alarms", 0.001, 100000 } /* log(1 - p) of a block keeps its digits */,
  [KEY_CONFIDENCE] = { "confidence", 0, 6.5 }, /* the maximum of z, for 24 medians that only rise, is 6.82 */
  [KEY_LIMIT] = { "limit", -1e30, 1e30 },
  [KEY_LOWER] = { "lower", -1e30, 1e30 },
};

int hk_detector_fail(char *error, size_t size, const char *format, const char *key, const char *value, const char *allowed)
{
  if (size > 0)
    snprintf(error, size, format, key, value, allowed);
  return -EINVAL;
}

static int set_word(uint8_t *field, enum hk_key key, const char *value, char *error, size_t size)
{
  char allowed[64] = "";
  for (size_t i = 0; i < COUNT(words[key]) && words[key][i]; i++) {
    if (strcmp(value, words[key][i]) == 0) {
      *field = (uint8_t)i;
      return 0;
    }
    snprintf(allowed + strlen(allowed), sizeof allowed - strlen(allowed), "%s%s", i ? ", " : "", words[key][i]);
  }
  (void)hk_detector_fail(error, size, "%s = %s: not one of %s", keys[key].name, value, allowed);
  hk_suggest_of(value, allowed, error, size);
  return -EINVAL;
}

static int set_number(double *out, enum hk_key key, const char *value, bool whole, char *error, size_t size)
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
  return hk_detector_fail(error, size, "%s = %s: not %s", keys[key].name, value, allowed);
}

static int set_duration(int64_t *out, enum hk_key key, const char *value, const char *word, int64_t word_means, char *error,
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
  return hk_detector_fail(error, size, "%s = %s: not %s", keys[key].name, value,
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
    (void)hk_detector_fail(error, size, "%s = %s: not %s", keys[KEY_ALERT].name, value,
                           "adaptive, off, or a score over 0 and at most 1");
    hk_suggest_of(value, "adaptive, off", error, size);
    return -EINVAL;
  }
  return 0;
}

/* Address of a key's value: of words, whole numbers and reals; NULL: the key is of another kind. */
static uint8_t *word_field(struct hk_detector_draft *draft, enum hk_key key)
{
  struct hk_detector *d = &draft->detector;
  uint8_t *const field[KEYS] = {
    [KEY_ALGORITHM] = &d->algorithm,
    [KEY_PRESENT] = &d->present,
    [KEY_OPERATOR] = &d->operator_,
    [KEY_SCALE] = &d->scale,
    [KEY_FILL] = &d->fill,
    [KEY_PRESET] = &draft->preset,
    [KEY_RATE] = &d->rate,
    [KEY_SOLVER] = &d->solver,
    [KEY_PROVISIONAL] = &d->provisional,
    [KEY_CHANNELS] = &d->channels,
    [KEY_REORTHOGONALISE] = &d->reorthogonalise,
  };
  return field[key];
}
static uint32_t *whole_field(struct hk_detector *d, enum hk_key key)
{
  uint32_t *const field[KEYS] = {
    [KEY_WINDOW] = &d->window,     [KEY_GAP] = &d->gap,           [KEY_RANK] = &d->rank,
    [KEY_KRYLOV] = &d->krylov,     [KEY_PRODUCTS] = &d->products, [KEY_STRIDE] = &d->stride,
    [KEY_MAX_FILL] = &d->max_fill, [KEY_HOLD] = &d->hold,         [KEY_COOLDOWN] = &d->cooldown,
    [KEY_BASELINE] = &d->baseline, [KEY_RESIDENT] = &d->resident, [KEY_NEIGHBOURS] = &d->neighbours,
    [KEY_SHORTEST] = &d->shortest,
  };
  return field[key];
}
static float *real_field(struct hk_detector *d, enum hk_key key)
{
  float *const field[KEYS] = {
    [KEY_MIN_SCORE] = &d->min_score,
    [KEY_CLEAR] = &d->clear,
    [KEY_SIGNAL] = &d->signal,
    [KEY_LEVEL] = &d->level,
    [KEY_ROUGHNESS] = &d->roughness,
    [KEY_LOCALITY] = &d->locality,
    [KEY_FALSE_ALARMS] = &d->false_alarms,
    [KEY_CONFIDENCE] = &d->limit.confidence,
  };
  return field[key];
}

static int set_whole(struct hk_detector *d, enum hk_key key, const char *value, char *error, size_t size)
{
  const bool search = key == KEY_WINDOW && strcmp(value, "auto") == 0; /* hk_detector_finish determines the widest window */
  const bool lasts = key == KEY_WINDOW && strpbrk(value, "nushmdwM") && hk_duration_parse(value, &d->limit.window) == 0;
  double number = 0;
  const int status = search || lasts ? 0 : set_number(&number, key, value, true, error, size);
  if (status < 0 && key == KEY_WINDOW)
    return hk_detector_fail(error, size, "%s = %s: not %s", keys[key].name, value,
                            "a whole number from 4 to 1024, or for algorithm = limit a duration such as 12h");
  if (status < 0)
    return status;
  if (key == KEY_WINDOW)
    d->search = search;
  *whole_field(d, key) = (uint32_t)number;
  return 0;
}

static int set_real(struct hk_detector *d, enum hk_key key, const char *value, char *error, size_t size)
{
  double number = 0;
  const int status = set_number(&number, key, value, false, error, size);
  if (status < 0)
    return status;
  if (number <= 0 && (key == KEY_CLEAR || key == KEY_FALSE_ALARMS || key == KEY_CONFIDENCE))
    return hk_detector_fail(error, size, "%s = %s: must be over 0%s", keys[key].name, value, "");
  if (key == KEY_LIMIT || key == KEY_LOWER) {
    *(key == KEY_LIMIT ? &d->limit.upper : &d->limit.lower) = number;
    *(key == KEY_LIMIT ? &d->limit.has_upper : &d->limit.has_lower) = 1;
    return 0;
  }
  *real_field(d, key) = (float)number;
  return 0;
}

/* Refuses a key that no detector has. */
static int refuse_key(const char *key, char *error, size_t size)
{
  const char *const meant = hk_suggest(key, &keys[0].name, KEYS, sizeof *keys);
  (void)hk_detector_fail(error, size, "%s: no such key of a detector%s%s", key, "", "");
  if (meant)
    hk_suggest_of(key, meant, error, size);
  return -EINVAL;
}

int hk_detector_set(struct hk_detector_draft *draft, const char *key, const char *value, char *error, size_t size)
{
  struct hk_detector *d = &draft->detector;
  enum hk_key k = 0;
  while (k < KEYS && strcmp(key, keys[k].name) != 0)
    k++;
  if (k == KEYS)
    return refuse_key(key, error, size);
  if (draft->given & KEY_BIT(k))
    return hk_detector_fail(error, size, "%s: given twice%s%s", key, "", "");
  int status;
  if (k <= KEY_REORTHOGONALISE)
    status = set_word(word_field(draft, k), k, value, error, size);
  else if (whole_field(d, k))
    status = set_whole(d, k, value, error, size);
  else if (k == KEY_INTERVAL)
    status = set_duration(&d->interval, k, value, NULL, 0, error, size);
  else if (k == KEY_SILENT)
    status = set_duration(&d->silent, k, value, "off", -1, error, size);
  else if (k == KEY_HORIZON)
    status = set_duration(&d->limit.horizon, k, value, NULL, 0, error, size);
  else if (k == KEY_ALERT)
    status = set_alert(d, value, error, size);
  else
    status = set_real(d, k, value, error, size);
  if (status < 0)
    return status;
  draft->given |= KEY_BIT(k);
  return 0;
}

const char *hk_algorithm_name(uint8_t algorithm)
{
  return algorithm <= HK_ALGORITHM_LAST ? words[KEY_ALGORITHM][algorithm] : "?";
}

/* The field of a key's value; some keys have two fields. */
#define FIELD(key, field)                                                                                                        \
  {                                                                                                                              \
    key, offsetof(struct hk_detector, field), sizeof((struct hk_detector *)0)->field                                             \
  }
static const struct {
  enum hk_key key;
  size_t offset, size;
} fields[] = {
  FIELD(KEY_ALGORITHM, algorithm),
  FIELD(KEY_PRESENT, present),
  FIELD(KEY_OPERATOR, operator_),
  FIELD(KEY_SCALE, scale),
  FIELD(KEY_RATE, rate),
  FIELD(KEY_PROVISIONAL, provisional),
  FIELD(KEY_CHANNELS, channels),
  FIELD(KEY_FILL, fill),
  FIELD(KEY_REORTHOGONALISE, reorthogonalise),
  FIELD(KEY_SOLVER, solver),
  FIELD(KEY_WINDOW, window),
  FIELD(KEY_WINDOW, search),
  FIELD(KEY_WINDOW, limit.window),
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
  FIELD(KEY_HORIZON, limit.horizon),
  FIELD(KEY_ALERT, alert),
  FIELD(KEY_ALERT, threshold),
  FIELD(KEY_MIN_SCORE, min_score),
  FIELD(KEY_CLEAR, clear),
  FIELD(KEY_SIGNAL, signal),
  FIELD(KEY_LEVEL, level),
  FIELD(KEY_ROUGHNESS, roughness),
  FIELD(KEY_LOCALITY, locality),
  FIELD(KEY_FALSE_ALARMS, false_alarms),
  FIELD(KEY_CONFIDENCE, limit.confidence),
  FIELD(KEY_LIMIT, limit.upper),
  FIELD(KEY_LIMIT, limit.has_upper),
  FIELD(KEY_LOWER, limit.lower),
  FIELD(KEY_LOWER, limit.has_lower),
};
#undef FIELD

void hk_detector_differences(const struct hk_detector *a, const struct hk_detector *b, char *out, size_t size)
{
  enum hk_key last = KEYS;
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

void hk_detector_take(struct hk_detector_draft *to, const struct hk_detector_draft *from, uint64_t keys_taken)
{
  for (size_t i = 0; i < COUNT(fields); i++)
    if (keys_taken & KEY_BIT(fields[i].key))
      memcpy((char *)&to->detector + fields[i].offset, (const char *)&from->detector + fields[i].offset, fields[i].size);
  if (keys_taken & KEY_BIT(KEY_PRESET))
    to->preset = from->preset;
  to->given |= keys_taken;
}

const char *hk_detector_key_name(enum hk_key key)
{
  return keys[key].name;
}

const char *hk_detector_word(enum hk_key key, uint8_t value)
{
  return words[key][value];
}

const char *hk_detector_key(uint64_t keys_one_of)
{
  return keys[__builtin_ctzll(keys_one_of)].name;
}

bool hk_detector_key_names(const char *names[KEYS], const char *name)
{
  bool there = false;
  for (uint32_t i = 0; i < KEYS; i++) {
    names[i] = hk_detector_key_name((enum hk_key)i);
    there |= strcmp(names[i], name) == 0;
  }
  return there;
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

/* Writes a field's value in the form of the configuration. */
static void write_key(const struct hk_detector *d, enum hk_key key, const void *field, size_t field_size, char *out, size_t size)
{
  uint32_t whole = 0;
  float real = 0;
  int64_t duration = 0;
  if (field_size == sizeof whole) {
    memcpy(&whole, field, sizeof whole);
    memcpy(&real, field, sizeof real);
  }
  if (field_size == sizeof duration)
    memcpy(&duration, field, sizeof duration);
  if (key == KEY_ALERT && d->alert != HK_ALERT_FIXED)
    snprintf(out, size, "%s", d->alert == HK_ALERT_OFF ? "off" : "adaptive");
  else if (key == KEY_ALERT)
    snprintf(out, size, "%.6g", (double)d->threshold);
  else if (key == KEY_LIMIT || key == KEY_LOWER)
    snprintf(out, size, "%.12g", key == KEY_LIMIT ? d->limit.upper : d->limit.lower);
  else if (key == KEY_WINDOW && d->limit.window > 0)
    write_duration(d->limit.window, out, size);
  else if (key <= KEY_REORTHOGONALISE)
    snprintf(out, size, "%s", words[key][*(const uint8_t *)field]);
  else if ((key == KEY_WINDOW && d->search) || (key == KEY_STRIDE && whole == 0))
    snprintf(out, size, "auto");
  else if (key < KEY_INTERVAL)
    snprintf(out, size, "%u", whole);
  else if (key <= KEY_HORIZON && duration <= 0)
    snprintf(out, size, "%s", duration < 0 ? "off" : "auto");
  else if (key <= KEY_HORIZON)
    write_duration(duration, out, size);
  else
    snprintf(out, size, "%.6g", (double)real);
}

enum hk_key hk_detector_field(const struct hk_detector *d, uint32_t i, char *value, size_t size)
{
  if (i >= COUNT(fields))
    return KEYS;
  write_key(d, fields[i].key, (const char *)d + fields[i].offset, fields[i].size, value, size);
  return fields[i].key;
}

int hk_algorithm_find(const char *name)
{
  for (int i = 0; i <= HK_ALGORITHM_LAST; i++)
    if (strcmp(name, words[KEY_ALGORITHM][i]) == 0)
      return i;
  return -EINVAL;
}
