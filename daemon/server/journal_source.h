/* The journal of one former shard during replay: how far it was read, where it is damaged, and how damage is handled. Thread:
 * main. */
#ifndef HK_JOURNAL_SOURCE_H
#define HK_JOURNAL_SOURCE_H

#include "daemon/durable/durable.h"
#include "daemon/durable/journal_read.h"

/* The journal ends at damage that may have lost needed records: after it a slot may be another sensor's without any trace. */
struct hk_journal_source {
  struct hk_durable *durable;
  struct hk_log *log;
  struct hk_journal_reader *reader;
  int folder;
  uint32_t shard;
  bool own; /* close closes the folder */
  bool begun;
  uint64_t from;    /* everything before is in the snapshot */
  uint64_t reached; /* position after the last record read */
  bool damaged;     /* at this place; from there on nothing is used, as far as is known: */
  bool hole;        /* points are missing because durability was lost: later positions of feeds are not valid */
  bool missing;     /* committed records are missing, so later records do not repeat them */
  uint64_t number, at;
  bool over;                   /* it ends at damage: the rest is read only to count it, */
  uint64_t behind;             /* up to this position */
  struct hk_journal_mark mark; /* its end, by its mark; all zero: unknown */
  bool marked;                 /* there is a mark */
  bool waits;                  /* its next record is a change of a sensor: */
  uint32_t type;
  struct hk_record_sensor change;
};

/* Opens the journal of a shard, which is needed from a position on. begun: the snapshot knows of it. *there false: there is none,
 * and nothing to close. Returns 0, or a negative errno with a message; to close in either case. */
int hk_journal_source_open(struct hk_journal_source *source, struct hk_durable *durable, uint32_t shard, uint64_t from,
                           bool begun, bool *there, char *error, size_t size);
void hk_journal_source_close(struct hk_journal_source *source);
/* Decides how to handle a record after damage. */
void hk_journal_source_judge(struct hk_journal_source *source, const struct hk_record *record);
/* After the last record: cuts off the torn end of a crash, sets damaged parts aside, logs what is missing, and adds the number of
 * missing points to *lost. Returns 0, or a negative errno, possibly with a message. */
int hk_journal_source_mend(struct hk_journal_source *source, uint64_t *lost, char *error, size_t size);

#endif
