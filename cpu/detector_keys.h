/* The keys of a detector: their names, words and ranges, and where their values are kept. One table; everything else follows from
 * it. detector.h declares what others need of it. */
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

/* Writes a message of three parts, as `format` says; it is cut where it does not fit. -EINVAL. */
int hk_detector_fail(char *error, size_t size, const char *format, const char *key, const char *value, const char *allowed);

/* Takes some of the keys that another draft was given, over what there is. */
void hk_detector_take(struct hk_detector_draft *to, const struct hk_detector_draft *from, uint64_t keys);

/* The name of a key; of the first of some keys, of which there is one. */
const char *hk_detector_key_name(enum hk_key key);
const char *hk_detector_key(uint64_t keys);
/* Writes the names of all keys; whether `name` is among them. */
bool hk_detector_key_names(const char *names[KEYS], const char *name);
/* The word that stands for a value of a key that is one of a few words. */
const char *hk_detector_word(enum hk_key key, uint8_t value);
/* The value of the i-th field as a configuration has it, and its key; KEYS: there is no such field. Some keys have two. */
enum hk_key hk_detector_field(const struct hk_detector *detector, uint32_t i, char *value, size_t size);

/* The algorithm of a name, or -EINVAL. */
int hk_algorithm_find(const char *name);

#endif
