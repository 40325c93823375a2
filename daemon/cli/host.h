/* Reads metrics of this Linux machine from /proc and /sys: processor, memory, disks, network, pressure. Thread: the caller's. */
#ifndef HK_HOST_H
#define HK_HOST_H

#include <stdint.h>

struct hk_host;

/* root: parent of proc/ and sys/, "/" except in tests; prefix: of all sensor names, followed by a point. Returns 0 and *out, or
 * -ENOMEM. */
int hk_host_open(struct hk_host **out, const char *root, const char *prefix);
void hk_host_close(struct hk_host *host); /* NULL is allowed */

/* Reads the present metrics. now: monotonic clock, ns. Counters give their rate per second, from the second call. Omits what this
 * machine lacks. Returns 0, or a negative errno: -ENOENT if there is no metric. */
int hk_host_look(struct hk_host *host, int64_t now);

/* Number of metrics of the last call; the sensor and value of each. The number of a sensor is constant while the host is open. */
uint32_t hk_host_figures(const struct hk_host *host);
uint32_t hk_host_sensor(const struct hk_host *host, uint32_t figure, double *value);
uint32_t hk_host_sensors(const struct hk_host *host);
const char *hk_host_name(const struct hk_host *host, uint32_t sensor);

#endif
