/* Maintenance windows: alerts that are raised while somebody works on a machine are marked (HANKEL_MAINTENANCE) and published all
 * the same. Scoring continues, and an alert's events and numbers do not depend on windows.
 *
 * A window has a glob on names of sensors, and covers the alerts whose point lies in it, by the points' times; an alert that was
 * raised in one keeps its mark. There are those of the configuration, [maintenance NAME], and those that clients ask for, which
 * outlive the daemon in the file `maintenance` of its state folder, where it has one.
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

/* 0 and *out, or -ENOMEM. */
int hk_maintenance_new(struct hk_maintenance **out, const struct hk_config *config);
void hk_maintenance_free(struct hk_maintenance *maintenance); /* NULL is allowed */
/* Another configuration is in force. 0, or -ENOMEM: its windows are those of before. */
int hk_maintenance_adopt(struct hk_maintenance *maintenance, const struct hk_config *config);
/* Reads the windows that clients requested before this start, and keeps them there from now on. folder and disk stay the
 * caller's. Damaged lines are skipped and logged. */
void hk_maintenance_open(struct hk_maintenance *maintenance, const struct hk_disk *disk, int folder, struct hk_log *log);

/* Whether a sensor is in maintenance at a time. */
bool hk_maintenance_covers(struct hk_maintenance *maintenance, struct hk_string sensor, int64_t time);

/* Adds a client's window from..to-1, `from` being now. 0; -ENOSPC: too many open windows; -EINVAL: the glob; -ENOMEM. by: 1 to
 * HK_WHO_MAX bytes. */
int hk_maintenance_begin(struct hk_maintenance *maintenance, struct hk_string glob, int64_t from, int64_t to,
                         struct hk_string by);
/* Ends, at `now`, clients' windows with this very glob. Returns how many. */
uint32_t hk_maintenance_end(struct hk_maintenance *maintenance, struct hk_string glob, int64_t now);
/* Writes clients' windows, if there is a folder. May wait for the disk. 0 or a negative errno. */
int hk_maintenance_save(struct hk_maintenance *maintenance);
/* Writes the file again if it is no longer the written one, and logs that. */
void hk_maintenance_mend(struct hk_maintenance *maintenance, struct hk_log *log);

/* Puts an array of JSON objects: the windows that are not over at `now`. */
void hk_maintenance_show(struct hk_maintenance *maintenance, int64_t now, struct hk_buffer *out);

#endif
