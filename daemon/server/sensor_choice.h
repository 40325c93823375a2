/* Which sensors a list has, and in what order: by name, channel and alert, which are known here; how a sensor is, its device says
 * (scoring/survey.h), so a list looks at more than it shows where it is chosen by that.
 *
 * A list in no order begins at a slot and ends at a bound. One that is sorted looks at all sensors, in each of its parts; the
 * part behind another begins at the place in the order where that one ended, so a sensor whose score moves meanwhile may come
 * twice or not at all.
 *
 * Thread: any; what is sorted not a loop's, for a million sensors take a moment. */
#ifndef HK_SENSOR_CHOICE_H
#define HK_SENSOR_CHOICE_H

#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

struct hk_server;
struct hk_surveyed;

enum hk_sensor_sort { HK_SENSORS_UNSORTED, HK_SENSORS_BY_SCORE, HK_SENSORS_BY_CHANGE };

/* A place in the order: the highest key first, of equal ones the lowest slot. Unsorted, all keys are 0. */
struct hk_sensor_place {
  uint64_t key;
  uint32_t slot;
};

struct hk_sensor_wanted {
  bool groups; /* only series of machines */
  struct hk_string glob;
  uint32_t limit; /* 1..HK_SENSORS_MAX */
  enum hk_sensor_sort sort;
  uint8_t channel;   /* enum hk_channel; 0: any */
  const char *alert; /* "true", "false"; "": either */
  const char *state; /* as hk_sensor_state names it; "": any */
  struct hk_sensor_place from;
};

struct hk_sensor_chosen {
  uint32_t handle;
  uint64_t key;
};

/* Reads what HTTP asks for; its strings stay the caller's. NULL, or what is wrong. */
const char *hk_sensors_want(const struct hk_web_sensors *asked, struct hk_sensor_wanted *out);
/* Chooses at most `most`, in order; *more: there may be more, from *next on. 0, -EINVAL (the glob is too long) or -ENOMEM. */
int hk_sensors_choose(struct hk_server *server, const struct hk_sensor_wanted *wanted, uint32_t most,
                      struct hk_sensor_chosen *out, uint32_t *n, struct hk_sensor_place *next, bool *more);
/* "ok", "warming", "gap", "stale", "waiting" or "unknown". */
const char *hk_sensor_state(const struct hk_surveyed *one);

#endif
