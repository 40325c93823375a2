/* Payloads of messages: numbers in text, and JSON.
 *
 * A payload is a number, true, false, on or off, with or without blanks around it, or JSON. In an object or array, every number,
 * true and false is a value, named by the path of keys to it separated by dots; an array's elements are numbered from 0:
 * vibration.rms, readings.0.celsius. If paths are given, only these are taken; `*` in a path matches any key.
 *
 * A time is a number or text as base/timestamp.h reads it: seconds, ms, us or ns since 1970 by its size, or
 * 2024-01-31T12:00:00.25Z. A number in JSON is a double: its ns are rounded to 256. Pure functions; any thread. */
#ifndef HK_MQTT_PAYLOAD_H
#define HK_MQTT_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MQTT_VALUES_MAX 1024u /* maximum number of values of one message */
#define HK_MQTT_PATH_MAX 256u    /* bytes of a path */
#define HK_MQTT_DEPTH 16u        /* keys of a path */

/* What to take from a payload. */
struct hk_mqtt_wanted {
  const char *values; /* paths separated by commas; "": all */
  const char *time;   /* path; "": none is looked for */
  bool only_timed;    /* payloads without a time are skipped silently */
};

/* Takes a value. path: "" for a value without one; ends with 0, valid during the call. */
typedef void hk_mqtt_take(void *arg, const char *path, double value);

/* Takes the values of a payload; determines the time first: *timed: whether there is one; *time: ns. Returns NULL, or the error,
 * a static string; then nothing was taken. */
const char *hk_mqtt_payload_read(const struct hk_mqtt_wanted *wanted, const char *data, size_t size, bool *timed, int64_t *time,
                                 hk_mqtt_take *take, void *arg);

#endif
