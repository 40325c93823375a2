/* Reads snapshots (snapshot.h). Errors: as there. Thread: one at a time. */
#ifndef HK_SNAPSHOT_READ_H
#define HK_SNAPSHOT_READ_H

#include "daemon/durable/snapshot.h"

/* A section of the file; valid until the next call. */
struct hk_snapshot_part {
  uint32_t type, count; /* type: enum hk_snapshot_part_type */
  uint64_t at;          /* its offset in the file */
  uint64_t position;
  int64_t arrival;
  uint64_t size;
  const uint8_t *payload; /* 8-byte aligned */
};

struct hk_snapshot_reader;

/* Opens a snapshot. why: receives the text of errors of this function and of hk_snapshot_next; at least 128 bytes, valid until
 * close. */
int hk_snapshot_open(struct hk_snapshot_reader **out, const struct hk_disk *disk, int folder, const char *name, char *why,
                     size_t size);
const struct hk_snapshot_about *hk_snapshot_of(const struct hk_snapshot_reader *reader);
/* Reads the next section and checks its checksum. Returns 1, 0 at the end of a file that is valid as a whole, or a negative
 * errno: -EBADMSG if it is damaged, -EPROTONOSUPPORT for a section of a later hankeld. */
int hk_snapshot_next(struct hk_snapshot_reader *reader, struct hk_snapshot_part *out);
void hk_snapshot_read_close(struct hk_snapshot_reader *reader); /* NULL is allowed */

/* Parse a section; pointers in the result point into it. Return 0, or -EBADMSG if the layout is invalid although the checksum is
 * right. */
int hk_snapshot_detector_read(const struct hk_snapshot_part *part, uint16_t *number, struct hk_string *name);
int hk_snapshot_feed_read(const struct hk_snapshot_part *part, struct hk_record_feed *feed, uint64_t *upto);
/* Parse the sensor, machine, owner, counter or provisional window at offset *at, initially 0, and advance *at. Return 1, 0 at the
 * end, or -EBADMSG. Pointers refer to the part. */
int hk_snapshot_sensor_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_sensor *out);
int hk_snapshot_machine_next(const struct hk_snapshot_part *part, size_t *at, struct hk_machine_memory *out, uint8_t *generation);
int hk_snapshot_owner_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_owner *out);
int hk_snapshot_counter_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_counter *out);
int hk_snapshot_provisional_next(const struct hk_snapshot_part *part, size_t *at, struct hk_snapshot_provisional *out);

#endif
