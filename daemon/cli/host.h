/* Figures of this machine, as Linux has them in /proc: processor, memory, disks, network, pressure. Thread: the caller's. */
#ifndef HK_HOST_H
#define HK_HOST_H

#include <stdint.h>

struct hk_host;

/* root: what stands before proc/ and sys/, "/" but in tests; prefix: what stands before every name, with a point. 0 and *out, or
 * -ENOMEM. */
int hk_host_open(struct hk_host **out, const char *root, const char *prefix);
void hk_host_close(struct hk_host *host); /* NULL is allowed */

/* Reads the figures of now, ns of a clock that only goes forward; counters give their difference a second from the second look
 * on. What is not there on this machine is left out. 0, or a negative errno: -ENOENT, there is nothing at all. */
int hk_host_look(struct hk_host *host, int64_t now);

/* Figures of the last look, and of each its sensor: its number is the same as long as the host is open. */
uint32_t hk_host_figures(const struct hk_host *host);
uint32_t hk_host_sensor(const struct hk_host *host, uint32_t figure, double *value);
uint32_t hk_host_sensors(const struct hk_host *host);
const char *hk_host_name(const struct hk_host *host, uint32_t sensor);

#endif
