/* A journal open for writing: journal.c appends and commits, journal_segments.c manages its files. */
#ifndef HK_JOURNAL_INTERNAL_H
#define HK_JOURNAL_INTERNAL_H

#include "daemon/durable/journal.h"

#include <pthread.h>

struct hk_journal_buffer {
  uint8_t *data;
  size_t size, capacity;
  int64_t since;  /* ns: when the first record was appended; 0: none */
  uint64_t begin; /* position before the first record */
  uint64_t end;   /* position after the last one */
};

struct hk_journal_segment {
  uint64_t number, begin, bytes, salt; /* bytes: committed ones */
  struct hk_disk_file file;            /* its state when it was found or made; the size is unused */
  bool stale;                          /* it differs from what was written */
};

struct hk_journal {
  struct hk_journal_place place;

  pthread_mutex_t lock;             /* protects the following: */
  struct hk_journal_buffer filling; /* appended records */
  size_t record;                    /* where the record that is being appended begins */
  int64_t taken_since;              /* ns: `since` of the records that are being committed; 0: none */
  struct hk_journal_segment *segments;
  size_t n_segments;
  uint64_t number; /* of the next segment */
  bool paused;
  bool renew; /* the next commit begins a new segment */

  atomic_size_t waiting; /* bytes in `filling` */
  atomic_uint_fast64_t position, committed, sure;

  /* the commit thread's */
  struct hk_journal_buffer taken;
  int file; /* -1: none */
  struct hk_journal_segment open;
  uint64_t marked; /* position of the mark */
};

static inline void hk_segment_name(const struct hk_journal *j, uint64_t number, char out[HK_DISK_NAME_MAX])
{
  hk_disk_name(out, j->place.stem, number, j->place.suffix);
}

#endif
