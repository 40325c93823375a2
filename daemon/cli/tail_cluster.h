/* Scores of a whole cluster, for `hankel tail --cluster`: connections to the machines that score partitions, besides the one that
 * was named. The report of that one says which machines these are. */
#ifndef HK_TAIL_CLUSTER_H
#define HK_TAIL_CLUSTER_H

#include "proto/hankel.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#define HK_TAIL_MACHINES 256u

struct hk_tail_cluster {
  char **argv;
  struct hankel_options link; /* callbacks for scores */
  const char *match;
  float min_score;
  uint32_t what;
  uint32_t n;
  struct hk_tail_machine {
    char *name;
    hankel *h;
  } machine[HK_TAIL_MACHINES];
};

/* Names of the machines other than the asked one that have partitions, by its report, with commas; to free. NULL: none, or no
 * memory.
 */
char *hk_tail_cluster_others(const cJSON *report);
/* Connects to machines of a report that are not connected yet. */
void hk_tail_cluster_look(struct hk_tail_cluster *c, const cJSON *report);
/* Waits up to `timeout` ms for one of them or for `first`; then shows what has come from them. */
void hk_tail_cluster_step(struct hk_tail_cluster *c, const hankel *first, int timeout);
void hk_tail_cluster_close(struct hk_tail_cluster *c);

#endif
