/* Maintenance windows: alerts that are raised during work on a machine are marked (HANKEL_MAINTENANCE), but still published.
 * Scoring continues, and an alert's events and numbers do not depend on windows.
 *
 * A window has a glob for names of sensors, and covers alerts whose point is within it, by the points' times; an alert raised in
 * a window keeps its mark. Windows come from the configuration, [maintenance NAME], and from clients' requests; the latter
 * outlive the daemon in the file `maintenance` of its state folder, if it has one.
 *
 * Thread: any. */
#ifndef HK_MAINTENANCE_H
#define HK_MAINTENANCE_H

#include "daemon/base/buffer.h"
#include "daemon/base/disk.h"
#include "daemon/base/log.h"
#include "daemon/config/config.h"
#include "daemon/sensors/maintenance_file.h"
#include "proto/wire/message.h"

struct hk_maintenance;

/* Returns 0 and *out, or -ENOMEM. */
int hk_maintenance_new(struct hk_maintenance **out, const struct hk_config *config);
void hk_maintenance_free(struct hk_maintenance *maintenance); /* NULL is allowed */
/* Another configuration is in force. Returns 0, or -ENOMEM: the former windows stay. */
int hk_maintenance_adopt(struct hk_maintenance *maintenance, const struct hk_config *config);
/* Reads the windows that clients requested before this start, and saves windows there from now on. folder and disk stay the
 * caller's. Damaged lines are skipped and logged. */
void hk_maintenance_open(struct hk_maintenance *maintenance, const struct hk_disk *disk, int folder, struct hk_log *log);

/* Whether a sensor is in maintenance at a time. */
bool hk_maintenance_covers(struct hk_maintenance *maintenance, struct hk_string sensor, int64_t time);

/* Adds a client's window from..to-1; `from` is now, or was. Returns 0; -EEXIST: it is there; -ENOSPC: too many open windows;
 * -EINVAL: the glob; -ENOMEM. by: 1 to HK_WHO_MAX bytes. */
int hk_maintenance_begin(struct hk_maintenance *maintenance, struct hk_string glob, int64_t from, int64_t to,
                         struct hk_string by);
/* Ends, at `now`, clients' windows with exactly this glob. Returns their number. */
uint32_t hk_maintenance_end(struct hk_maintenance *maintenance, struct hk_string glob, int64_t now);
/* Writes clients' windows, if there is a folder. May wait for the disk. Returns 0 or a negative errno. */
int hk_maintenance_save(struct hk_maintenance *maintenance);
/* Writes the file again if it is no longer the written one, and logs that. */
void hk_maintenance_mend(struct hk_maintenance *maintenance, struct hk_log *log);

/* Appends the windows that have not ended at `now`, as an array of JSON objects. */
void hk_maintenance_show(struct hk_maintenance *maintenance, int64_t now, struct hk_buffer *out);

#endif
