/* Payloads of the records of a shard's journal; FORMAT.md describes the bytes.
 *
 * The position of such a journal counts all points that the shard has ever taken from chunks. */
#ifndef HK_JOURNAL_RECORDS_H
#define HK_JOURNAL_RECORDS_H

#include "daemon/durable/journal.h"
#include "proto/wire/message.h"

enum hk_record_type {
  HK_RECORD_POINTS = 1,    /* a chunk; its count is the number of points */
  HK_RECORD_REGISTER = 2,  /* a name became a sensor */
  HK_RECORD_RETIRE = 3,    /* a sensor is being forgotten: its name is free, and its alert ends */
  HK_RECORD_FEED = 4,      /* a feed got a number */
  HK_RECORD_RELEASE = 5,   /* a retired sensor is forgotten: its slot is free */
  HK_RECORD_FEED_GONE = 6, /* a feed is forgotten */
};

/* As in the payload. */
struct hk_record_mark {
  uint32_t feed, reserved;
  uint64_t upto;
};

/* The columns lie in the payload, aligned. */
struct hk_record_points {
  uint32_t n, n_marks;
  const struct hk_record_mark *marks;
  const int64_t *time;
  const double *value;
  const uint32_t *slot; /* within the shard */
};

/* REGISTER, RETIRE and RELEASE. `order` counts the three kinds over all shards, from 1: the order in which a reader of several
 * journals applies them. Only REGISTER has the strings. */
struct hk_record_sensor {
  uint64_t order;
  uint32_t slot; /* the registry's */
  uint8_t generation;
  struct hk_string name, detector;
  uint64_t owner; /* the sensor's owner (sensors/owners.h); 0: none, or written by an older version */
};

struct hk_record_feed {
  uint32_t number;
  struct hk_string name;
  uint64_t owner; /* of named_feeds.h; 0: none, or written by an older version */
  int64_t used;   /* ns, wall clock; 0: unknown */
};

/* Appends points, at most HK_CHUNK_POINTS and HK_CHUNK_MARKS. Returns 0 and the position after them, or -ENOMEM. */
int hk_record_points(struct hk_journal *journal, const struct hk_record_points *points, uint64_t *position);
/* Append a record. type: REGISTER, RETIRE or RELEASE. Return 0 or -ENOMEM. */
int hk_record_sensor(struct hk_journal *journal, uint32_t type, const struct hk_record_sensor *sensor);
int hk_record_feed(struct hk_journal *journal, const struct hk_record_feed *feed);
int hk_record_feed_gone(struct hk_journal *journal, uint32_t number);

/* Parse a payload; results point into it. Return 0, or -EBADMSG if the layout is invalid although the checksum is right. */
int hk_record_points_read(const struct hk_record *record, struct hk_record_points *out);
int hk_record_sensor_read(const struct hk_record *record, struct hk_record_sensor *out);
int hk_record_feed_read(const struct hk_record *record, struct hk_record_feed *out);
int hk_record_feed_gone_read(const struct hk_record *record, uint32_t *number);

#endif
