/* A machine of a cluster, as the others see it by its notices (cluster_mail.h). */
#ifndef HK_MAIL_MACHINE_H
#define HK_MAIL_MACHINE_H

#include "daemon/bridge/cluster.h"

#define HK_MAIL_SILENCE 10 /* s after which a machine that sends no notices counts as away */
#define HK_MAIL_MACHINES 256u

/* By its last notice. */
struct hk_mail_machine {
  char name[HK_MACHINE_MAX + 1];
  int64_t silent;      /* ns since that notice */
  bool away;           /* for longer than HK_MAIL_SILENCE */
  bool scores;         /* a scorer, with partitions or without */
  uint32_t partitions; /* number of those that it has, and no other of a later epoch */
  char *report;        /* the notice; NULL: was not asked for, or no memory; else the caller frees it */
};

#endif
