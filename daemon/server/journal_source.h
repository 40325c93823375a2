/* The journal of one shard, of those that there were, while it is replayed: how far it was read, where it is damaged, and what is
 * done about that. Thread: main. */
#ifndef HK_JOURNAL_SOURCE_H
#define HK_JOURNAL_SOURCE_H

#include "daemon/durable/durable.h"
#include "daemon/durable/journal_read.h"

/* Where it is damaged, and what is lost may be needed, it ends: behind that a
 * slot may be another sensor's, and nobody would know. */
struct hk_journal_source {
  struct hk_durable *durable;
  struct hk_log *log;
  struct hk_journal_reader *reader;
  int folder;
  uint32_t shard;
  bool own; /* the folder is ours to close */
  bool begun;
  uint64_t from;    /* what is before is in the snapshot */
  uint64_t reached; /* position behind what was read */
  bool damaged;     /* at a place from which on nothing is to be used, as far as is known: */
  bool hole;    /* points are missing that a journal without a disk has passed over: how far feeds are behind that says nothing */
  bool missing; /* something that was committed is not there at all, so what follows is no repetition of it */
  uint64_t number, at;
  bool over;                   /* so it is: what follows is read only to say how much it is, */
  uint64_t behind;             /* up to this position */
  struct hk_journal_mark mark; /* how far it was, by its mark; all zero: nobody knows */
  bool marked;                 /* somebody does */
  bool waits;                  /* its next record is a change of a sensor: */
  uint32_t type;
  struct hk_record_sensor change;
};

/* Opens the journal of a shard, which is needed from a position on. begun: the snapshot knows of it. False in *there: there is
 * none, and nothing to close. 0, or a negative errno with a message; close it in either case. */
int hk_journal_source_open(struct hk_journal_source *source, struct hk_durable *durable, uint32_t shard, uint64_t from,
                           bool begun, bool *there, char *error, size_t size);
void hk_journal_source_close(struct hk_journal_source *source);
/* Says what to do with a record behind damage. */
void hk_journal_source_judge(struct hk_journal_source *source, const struct hk_record *record);
/* All was read: cuts off what a crash has left, sets aside what is damaged, tells what is missing, and adds to *lost how many
 * points that is. 0, or a negative errno, perhaps with a message. */
int hk_journal_source_mend(struct hk_journal_source *source, uint64_t *lost, char *error, size_t size);

#endif
