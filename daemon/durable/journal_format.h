/* The bytes of a journal's segments, for writer and reader; described in FORMAT.md. All numbers are little-endian, like the
 * machine's. */
#ifndef HK_JOURNAL_FORMAT_H
#define HK_JOURNAL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are in memory");

#define HK_JOURNAL_VERSION 4
#define HK_JOURNAL_HEADER 96     /* bytes at the beginning of a segment */
#define HK_RECORD_HEADER 32      /* bytes before a payload */
#define HK_RECORD_MAX (1u << 20) /* bytes of a payload */

struct hk_segment_head {
  char magic[8];
  uint32_t version, kind;
  uint32_t shard, shards;
  uint64_t number; /* as in its name */
  uint64_t begin;  /* position of its first record */
  uint64_t salt;   /* seed of its records' checksums: so remains of an older file on the disk are not taken for records */
  int64_t made;    /* ns since the epoch */
  /* The segment before it: its number (0: none), how much of it was committed, and its salt. */
  uint64_t before, before_bytes, before_salt;
  uint64_t reserved;
  uint64_t checksum;
};
_Static_assert(sizeof(struct hk_segment_head) == HK_JOURNAL_HEADER, "no padding");
#define HK_SEGMENT_MAGIC "HKJOURN\n"

struct hk_record_head {
  uint32_t size, type; /* size: of the payload; zeros follow up to a multiple of 8 */
  uint32_t count, reserved;
  uint64_t position;
  uint64_t checksum; /* XXH3 of the payload; its seed is the XXH3 of the head before it, with the salt as seed */
};
_Static_assert(sizeof(struct hk_record_head) == HK_RECORD_HEADER, "no padding");

/* Bytes of a record with a payload of `size` bytes. */
static inline size_t hk_record_bytes(size_t size)
{
  return HK_RECORD_HEADER + (size + 7) / 8 * 8;
}

static inline uint64_t hk_record_checksum(const struct hk_record_head *head, const void *payload, uint64_t salt)
{
  const uint64_t of_head = XXH3_64bits_withSeed(head, offsetof(struct hk_record_head, checksum), salt);
  return XXH3_64bits_withSeed(payload, head->size, of_head);
}

static inline uint64_t hk_segment_checksum(const struct hk_segment_head *head)
{
  return XXH3_64bits(head, offsetof(struct hk_segment_head, checksum));
}

/* Heads before version 4 end where the later ones name the previous segment. */
#define HK_JOURNAL_OLDEST 3 /* oldest readable version */
#define HK_OLD_HEAD (offsetof(struct hk_segment_head, before) + sizeof(uint64_t))

/* Bytes of a segment's head by its version. */
static inline size_t hk_segment_head_bytes(uint32_t version)
{
  return version < HK_JOURNAL_VERSION ? HK_OLD_HEAD : HK_JOURNAL_HEADER;
}

/* Whether the first `size` bytes of a segment, at most HK_JOURNAL_HEADER, are a valid head of any version. Clears the fields of
 * the previous segment in an old head. */
static inline bool hk_segment_head_good(struct hk_segment_head *head, size_t size)
{
  if (size < HK_OLD_HEAD || memcmp(head->magic, HK_SEGMENT_MAGIC, sizeof head->magic) != 0)
    return false;
  if (head->version >= HK_JOURNAL_VERSION)
    return size >= sizeof *head && head->checksum == hk_segment_checksum(head);
  if (head->before != XXH3_64bits(head, offsetof(struct hk_segment_head, before))) /* that is where its checksum was */
    return false;
  memset(&head->before, 0, sizeof *head - offsetof(struct hk_segment_head, before));
  return true;
}

#endif
