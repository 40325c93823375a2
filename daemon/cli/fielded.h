/* Applies a field to a recording: converts its points into points of the derived sensors, such as SENSOR#residual, SENSOR#model
 * or SENSOR#focus, which have the same numbers. Thread: the caller's. */
#ifndef HK_FIELDED_H
#define HK_FIELDED_H

#include "cpu/field/binding.h"
#include "cpu/rules/alert.h"
#include "daemon/cli/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct hk_fielded;

/* keys: as in a [field NAME] section (hk_field_parse). All sensors of the recording must be known. Returns 0, or an exit code
 * after a message that names --field. */
int hk_fielded_open(struct hk_fielded **out, char **argv, const char *keys, const struct hk_recordings *csv);
/* The same with the names of n sensors, of which it makes copies. */
int hk_fielded_open_named(struct hk_fielded **out, char **argv, const char *keys, const char *const *sensor, uint32_t n);
void hk_fielded_close(struct hk_fielded *fielded); /* NULL is allowed */

const char *hk_fielded_name(const struct hk_fielded *fielded, uint32_t sensor);

struct hk_fielded_point {
  uint32_t sensor;
  int64_t time;
  double value;
};

/* Adds a point. Call hk_fielded_next until it returns false before adding the next. */
void hk_fielded_put(struct hk_fielded *fielded, uint32_t sensor, int64_t time, double value);
bool hk_fielded_next(struct hk_fielded *fielded, struct hk_fielded_point *out);

/* The derived sensor to which a deviation of this one is attributed; NULL: none. */
const char *hk_fielded_blamed(const struct hk_fielded *fielded, uint32_t sensor, double value);

#define HK_FIELDED_LINE "line" /* name of the series whose alerts are the changes that a focus finds */

/* The next change that was found up to a time, and the sensor where it began; NULL: none. */
const struct hk_event *hk_fielded_change(struct hk_fielded *fielded, int64_t time, const char **sensor);

/* Reports on standard error which sensors have no derived points, and what a model or a filter found. */
void hk_fielded_explain(const struct hk_fielded *fielded);

#endif
