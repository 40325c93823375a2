/* Payloads of messages: numbers in text, and JSON.
 *
 * A payload is a number, true, false, on or off, with or without blanks around it, or JSON. Of an object or array every number
 * and every true and false in it is a value, named by the path of keys to it with dots between them, an array's elements by their
 * place from 0 on: vibration.rms, readings.0.celsius. Where paths are given, those alone are taken; `*` in one stands for any
 * key.
 *
 * A time, where one is asked for, is a number or text as base/timestamp.h reads it: seconds, ms, us or ns since 1970 by its size,
 * or 2024-01-31T12:00:00.25Z. A number in JSON is a double: its ns are rounded to 256. Pure functions; any thread. */
#ifndef HK_MQTT_PAYLOAD_H
#define HK_MQTT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MQTT_VALUES_MAX 1024u /* of one message */
#define HK_MQTT_PATH_MAX 256u    /* bytes of a path */
#define HK_MQTT_DEPTH 16u        /* keys of a path */

/* What to take of a payload. */
struct hk_mqtt_wanted {
  const char *values; /* paths with commas between them; "": all */
  const char *time;   /* path; "": none is looked for */
  bool only_timed;    /* what has no time is passed over, without a word */
};

/* path: "" of a value that has none; ends with 0, valid during the call. */
typedef void hk_mqtt_take(void *arg, const char *path, double value);

/* Takes the values of a payload, the time first: *timed says whether there is one, *time is that (ns). NULL, or what is wrong, in
 * words that live for ever; nothing was taken then. */
const char *hk_mqtt_payload_read(const struct hk_mqtt_wanted *wanted, const char *data, size_t size, bool *timed, int64_t *time,
                                 hk_mqtt_take *take, void *arg);
/* A number since 1970 as ns. False: it is not one. */
bool hk_mqtt_time_of(double number, int64_t *time);

#endif
