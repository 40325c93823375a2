/* Selects and orders the sensors of a list: by name, channel and alert, which are known here. The state of a sensor is known to
 * its device only (scoring/survey.h), so a list selected by state examines more sensors than it shows.
 *
 * An unsorted list begins at a slot and ends at a bound. A sorted one examines all sensors for each of its parts; the next part
 * begins at the place in the order where the last one ended, so a sensor whose score changes meanwhile may appear twice or not at
 * all.
 *
 * Thread: any; for sorted lists not a loop's, since a million sensors take a while. */
#ifndef HK_SENSOR_CHOICE_H
#define HK_SENSOR_CHOICE_H

#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

struct hk_server;
struct hk_surveyed;

enum hk_sensor_sort { HK_SENSORS_UNSORTED, HK_SENSORS_BY_SCORE, HK_SENSORS_BY_CHANGE };

/* A place in the order: the highest key first; among equal keys the lowest slot. Unsorted: all keys are 0. */
struct hk_sensor_place {
  uint64_t key;
  uint32_t slot;
};

struct hk_sensor_wanted {
  bool rows;   /* the answer is for server/fleet_list.h */
  bool groups; /* only series of machines, */
  bool lines;  /* and only of models that have this line: */
  uint32_t line;
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

/* Reads a request of HTTP; its strings stay the caller's. Returns NULL, or what is wrong. */
const char *hk_sensors_want(const struct hk_web_sensors *asked, struct hk_sensor_wanted *out);
/* Selects at most `most` sensors, in order; *more: there may be more, from *next on. Returns 0, -EINVAL (the glob is too long) or
 * -ENOMEM. */
int hk_sensors_choose(struct hk_server *server, const struct hk_sensor_wanted *wanted, uint32_t most,
                      struct hk_sensor_chosen *out, uint32_t *n, struct hk_sensor_place *next, bool *more);
/* "ok", "warming", "provisional", "gap", "stale", "waiting" or "unknown". */
const char *hk_sensor_state(const struct hk_surveyed *one);

#endif
