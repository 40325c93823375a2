/* Table of the machines of a cluster, by their notices (letter.h). Thread: any. */
#ifndef HK_MACHINE_TABLE_H
#define HK_MACHINE_TABLE_H

#include "daemon/bridge/letter.h"
#include "daemon/bridge/mail_machine.h"

#include <pthread.h>

struct hk_machine_holding {
  uint32_t partition;
  uint64_t epoch;
};

struct hk_machine_row {
  char name[HK_MACHINE_MAX + 1];
  int64_t heard; /* ns, hk_now: its last notice */
  char *report;
  struct hk_machine_holding *held;
  uint32_t n_held;
  bool scores; /* a scorer, with partitions or without */
};

struct hk_machine_table {
  pthread_mutex_t lock;                            /* protects the following: */
  struct hk_machine_row machine[HK_MAIL_MACHINES]; /* in the order of names */
  uint32_t n;
};

void hk_machine_table_init(struct hk_machine_table *table); /* zeroed */
void hk_machine_table_free(struct hk_machine_table *table);
/* Takes a notice: a machine is new, has something else, or, with an empty one, ends. Without memory or room it is left out. */
void hk_machine_table_take(struct hk_machine_table *table, const struct hk_letter *notice);
/* Forgets machines that have been away for an hour. */
void hk_machine_table_forget(struct hk_machine_table *table);
/* The machine that reports to have a partition, with the latest epoch. False: none does. */
bool hk_machine_table_holder(struct hk_machine_table *table, uint32_t partition, struct hk_holder *out);
/* Copies the table, in the order of names, with reports or without; returns the number of machines. */
uint32_t hk_machine_table_list(struct hk_machine_table *table, bool reports, struct hk_mail_machine out[HK_MAIL_MACHINES]);

#endif
