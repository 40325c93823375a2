/* The bytes of a snapshot, for writer and reader; described in FORMAT.md. All numbers are little-endian, like the machine's. */
#ifndef HK_SNAPSHOT_FORMAT_H
#define HK_SNAPSHOT_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are in memory");

#define HK_SNAPSHOT_VERSION 3
#define HK_SNAPSHOT_MAGIC "HKSNAPS\n"
#define HK_SNAPSHOT_PART_MAX (64u << 20) /* bytes of a payload */

struct hk_snapshot_head {
  char magic[8];
  uint32_t version;
  uint32_t together; /* 1 or 0, see snapshot.h */
  uint32_t shard, shards;
  uint64_t number; /* as in its name */
  uint64_t epoch;  /* see snapshot.h */
  uint64_t begin;  /* the shard's position when it was begun */
  uint64_t order;  /* of the last change of a sensor then */
  uint64_t salt;   /* seed of its sections' checksums */
  int64_t made;    /* ns since the epoch */
  uint64_t checksum;
};
_Static_assert(sizeof(struct hk_snapshot_head) == 80, "no padding");

struct hk_part_head {
  uint32_t type, count;
  uint64_t size;     /* of the payload; zeros follow up to a multiple of 8 */
  uint64_t position; /* SENSORS: when these were copied; END: position of the last SENSORS */
  int64_t arrival;   /* SENSORS: that moment on the arrival clock, which `seen` of states uses, ns; END: how far the data were */
  uint64_t checksum; /* XXH3-64 of the payload; its seed is the XXH3-64 of the head before it, with the salt as seed */
};
_Static_assert(sizeof(struct hk_part_head) == 40, "no padding");

/* Precedes each sensor's standing alert, if it has one, the times of the flap limit, its segments, its name and its state, each
 * padded to a multiple of 8. */
struct hk_file_sensor {
  uint32_t slot;
  uint8_t generation, stands;
  uint16_t detector;            /* number within the file */
  uint16_t name_size, segments; /* segments: number of remembered ones */
  uint32_t state_size;          /* 0: no state */
  uint64_t points, events;      /* sequences */
  uint32_t number;              /* of its last alert */
  uint32_t raised;              /* number of flap-limit times, which follow the alert and the number of held-back alerts */
};
_Static_assert(sizeof(struct hk_file_sensor) == 40, "no padding");

struct hk_file_alert {
  int64_t time, from, instant;
  double before, after;
  float score, margin;
  float spread_before, spread_after;
  uint32_t number, held;
  uint8_t kind, channel, marks;
  uint8_t by_size; /* length of `by`, bytes; 0: not acknowledged */
  uint32_t similar;
  int64_t similar_from;
  float likeness;
  uint16_t note;        /* bytes of the novelty note that follows a sensor's alert: all or none */
  uint16_t severity;    /* in thousandths; 0 in snapshots from before it existed */
  int64_t acknowledged; /* time of the acknowledgement */
  char by[64];
};
_Static_assert(sizeof(struct hk_file_alert) == 160, "no padding");

/* Precedes the segments of a sensor: the one that has not ended. */
struct hk_file_segments {
  int64_t from;
  uint32_t number, reserved;
};
_Static_assert(sizeof(struct hk_file_segments) == 16, "no padding");

struct hk_file_segment {
  int64_t from;
  double level;
  float spread;
  uint32_t number;
  int8_t sketch[12];
  uint32_t reserved;
};
_Static_assert(sizeof(struct hk_file_segment) == 40, "no padding");

/* Precedes its standing alert, if it has one, its members, its changes and its rows, each a multiple of 8 bytes. */
struct hk_file_machine {
  uint32_t slot; /* of its series */
  uint8_t generation, told, stands, reserved;
  uint32_t number; /* of its last alert */
  uint32_t members, changes;
  uint32_t rows_size;
};
_Static_assert(sizeof(struct hk_file_machine) == 24, "no padding");

/* The owner that a sensor counts for. */
struct hk_file_owner {
  uint32_t slot;
  uint8_t generation, reserved[3];
  uint64_t owner;
};
_Static_assert(sizeof(struct hk_file_owner) == 16, "no padding");

/* The rate of a sensor. */
struct hk_file_counter {
  uint32_t slot;
  uint8_t generation, kind, seen, rises; /* as in cpu/rules/rate.h */
  uint8_t resets, reserved[7];
  int64_t time; /* ns: of its last value */
  double value;
};
_Static_assert(sizeof(struct hk_file_counter) == 32, "no padding");

/* Precedes what is saved of a sensor's provisional scores. */
struct hk_file_provisional {
  uint32_t slot;
  uint8_t generation, reserved[3];
  uint32_t size, unused;
};
_Static_assert(sizeof(struct hk_file_provisional) == 16, "no padding");

struct hk_file_end {
  uint64_t parts, sensors;
  uint64_t bytes; /* of the file before this section */
  uint64_t chain; /* of the checksums of all sections before */
};
_Static_assert(sizeof(struct hk_file_end) == 32, "no padding");

static inline uint64_t hk_snapshot_checksum(const struct hk_snapshot_head *head)
{
  return XXH3_64bits(head, offsetof(struct hk_snapshot_head, checksum));
}

static inline uint64_t hk_part_checksum(const struct hk_part_head *head, const void *payload, uint64_t salt)
{
  const uint64_t of_head = XXH3_64bits_withSeed(head, offsetof(struct hk_part_head, checksum), salt);
  return XXH3_64bits_withSeed(payload, head->size, of_head);
}

static inline uint64_t hk_part_chain(uint64_t chain, uint64_t checksum)
{
  return XXH3_64bits_withSeed(&checksum, sizeof checksum, chain);
}

static inline size_t hk_padded(size_t size)
{
  return (size + 7) / 8 * 8;
}

#endif
