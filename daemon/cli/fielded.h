/* A recording whose sensors are a field: what comes of their points are the points of the derived sensors, SENSOR#residual or
 * SENSOR#model, with the same numbers. Thread: the caller's. */
#ifndef HK_FIELDED_H
#define HK_FIELDED_H

#include "cpu/field/binding.h"
#include "daemon/cli/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct hk_fielded;

/* keys: as in a [field NAME] section (hk_field_parse). All sensors of the recording must be known. 0 or an exit code, when the
 * fault was told, in the name of --field. */
int hk_fielded_open(struct hk_fielded **out, char **argv, const char *keys, const struct hk_recordings *csv);
void hk_fielded_close(struct hk_fielded *fielded); /* NULL is allowed */

const char *hk_fielded_name(const struct hk_fielded *fielded, uint32_t sensor);

struct hk_fielded_point {
  uint32_t sensor;
  int64_t time;
  double value;
};

/* Takes a point. Ask hk_fielded_next for all that come of it before the next one is put. */
void hk_fielded_put(struct hk_fielded *fielded, uint32_t sensor, int64_t time, double value);
bool hk_fielded_next(struct hk_fielded *fielded, struct hk_fielded_point *out);

/* The derived sensor that is to blame for a value of this one; NULL: none is. */
const char *hk_fielded_blamed(const struct hk_fielded *fielded, uint32_t sensor, double value);

/* Tells on standard error of what there can be no residual. */
void hk_fielded_explain(const struct hk_fielded *fielded);

#endif
