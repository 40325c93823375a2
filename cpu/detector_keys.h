/* The keys of a detector: one table of their names, words, ranges and fields, from which all else is derived. Internal;
 * detector.h declares the public part. */
#ifndef HK_DETECTOR_KEYS_H
#define HK_DETECTOR_KEYS_H

#include "cpu/detector.h"

#include <stdbool.h>
#include <stddef.h>

enum hk_key {
  KEY_ALGORITHM,
  KEY_PRESENT,
  KEY_OPERATOR,
  KEY_SCALE,
  KEY_FILL,
  KEY_PRESET,
  KEY_SOLVER,
  KEY_RATE,
  KEY_PROVISIONAL,
  KEY_CHANNELS,
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
  KEY_SILENT,
  KEY_HORIZON, /* durations */
  KEY_ALERT,
  KEY_MIN_SCORE,
  KEY_CLEAR,
  KEY_SIGNAL,
  KEY_LEVEL,
  KEY_ROUGHNESS,
  KEY_LOCALITY,
  KEY_FALSE_ALARMS,
  KEY_CONFIDENCE,
  KEY_LIMIT,
  KEY_LOWER, /* reals */
  KEYS,
};
_Static_assert(KEYS <= 64, "given: a bit for each key");
#define KEY_BIT(key) ((uint64_t)1 << (key))

enum hk_preset { PRESET_DEFAULT, PRESET_PAPER, PRESET_PRECISE };

/* Writes a message of three parts by `format`, truncated if it does not fit. Returns -EINVAL. */
int hk_detector_fail(char *error, size_t size, const char *format, const char *key, const char *value, const char *allowed);

/* Copies the given ones of `keys` from another draft, and overrides those in `to`. */
void hk_detector_take(struct hk_detector_draft *to, const struct hk_detector_draft *from, uint64_t keys);

/* Name of a key; hk_detector_key: name of the first of a set of keys, which is not empty. */
const char *hk_detector_key_name(enum hk_key key);
const char *hk_detector_key(uint64_t keys);
/* Writes the names of all keys. Returns whether `name` is one of them. */
bool hk_detector_key_names(const char *names[KEYS], const char *name);
/* Returns the word for a value of a key whose values are words. */
const char *hk_detector_word(enum hk_key key, uint8_t value);
/* Writes the value of the i-th field in the form of the configuration and returns its key; KEYS: no such field. Some keys have
 * two fields. */
enum hk_key hk_detector_field(const struct hk_detector *detector, uint32_t i, char *value, size_t size);

/* Returns the algorithm with a name, or -EINVAL. */
int hk_algorithm_find(const char *name);

#endif
