#include "daemon/bridge/engine_kafka_group.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FAREWELL 1000000000ll /* ns for leaving a group; its members learn it later if that is too short */
#define STEP 20               /* ms of that at a time */

struct place {
  bool ours;
  struct hk_kafka_lease *lease; /* NULL: nobody here waits for it */
};

struct hk_kafka_group {
  struct hk_kafka_client client;             /* must be first: the library's callbacks get it */
  rd_kafka_topic_partition_list_t *recalled; /* partitions to be given back, all at once; NULL: none */
  uint32_t waiting;                          /* leases that are waited for, or held */
  uint32_t partitions;
  struct place place[];
};

static void lease_becomes(struct hk_kafka_lease *lease, int state)
{
  const uint64_t one = 1;
  lease->state = state;
  const ssize_t n = write(lease->wake, &one, sizeof one);
  (void)n; /* it is readable already */
}

static struct place *place_for(struct hk_kafka_group *g, const rd_kafka_topic_partition_t *p)
{
  return p->partition >= 0 && (uint32_t)p->partition < g->partitions ? &g->place[p->partition] : NULL;
}

/* A failure of the library's own logic: the group is given up. */
static void check(struct hk_kafka_group *g, rd_kafka_error_t *error)
{
  if (error)
    (void)hk_kafka_client_error(&g->client, RD_KAFKA_RESP_ERR__FATAL, hk_kafka.error_string(error));
  if (error)
    hk_kafka.error_destroy(error);
}

static void partitions_given(struct hk_kafka_group *g, rd_kafka_topic_partition_list_t *list)
{
  for (int i = 0; i < list->cnt; i++) {
    struct place *p = place_for(g, &list->elems[i]);
    list->elems[i].offset = RD_KAFKA_OFFSET_END;
    if (!p)
      continue;
    p->ours = true;
    if (p->lease)
      lease_becomes(p->lease, HK_KAFKA_OFFERED);
  }
  check(g, hk_kafka.incremental_assign(g->client.rk, list));
  (void)hk_kafka.pause_partitions(g->client.rk, list); /* what came before is dropped */
}

/* Gives back what was recalled, once none of it is held. */
static void give_recalled_back(struct hk_kafka_group *g)
{
  for (int i = 0; g->recalled && i < g->recalled->cnt; i++) {
    const struct place *p = place_for(g, &g->recalled->elems[i]);
    if (p && p->lease && (p->lease->state == HK_KAFKA_RECALLED || p->lease->state == HK_KAFKA_RETURNS))
      return;
  }
  if (!g->recalled)
    return;
  check(g, hk_kafka.incremental_unassign(g->client.rk, g->recalled));
  hk_kafka.topic_partition_list_destroy(g->recalled);
  g->recalled = NULL;
}

static void partitions_taken(struct hk_kafka_group *g, const rd_kafka_topic_partition_list_t *list)
{
  const bool lost = hk_kafka.assignment_lost(g->client.rk);
  if (g->recalled)
    hk_kafka.topic_partition_list_destroy(g->recalled);
  g->recalled = hk_kafka.topic_partition_list_copy(list);
  for (int i = 0; i < list->cnt; i++) {
    struct place *p = place_for(g, &list->elems[i]);
    if (!p)
      continue;
    p->ours = false;
    if (!p->lease)
      continue;
    const bool held = p->lease->state != HK_KAFKA_WAITS && p->lease->state != HK_KAFKA_OFFERED;
    if (held)
      lease_becomes(p->lease, lost ? HK_KAFKA_LOST : HK_KAFKA_RECALLED);
    else
      p->lease->state = HK_KAFKA_WAITS;
  }
  give_recalled_back(g);
}

static void rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t *list, void *client)
{
  struct hk_kafka_group *g = client;
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
    partitions_given(g, list);
  else if (what == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS)
    partitions_taken(g, list);
  else
    (void)hk_kafka_client_error(&g->client, RD_KAFKA_RESP_ERR__FATAL, hk_kafka.err2str(what));
  (void)rk;
}

int hk_kafka_group_open(struct hk_kafka_group **out, const struct hk_cluster_rule *rule, uint32_t broker, int wake,
                        const char *name, const char *topic, uint32_t partitions, char why[HK_ENGINE_WHY])
{
  struct hk_kafka_group *g = calloc(1, sizeof *g + partitions * sizeof *g->place);
  const struct hk_kafka_setup setup = { HK_KAFKA_MEMBER, rule, broker, wake, name, rebalance };
  *out = NULL;
  if (!g) {
    snprintf(why, HK_ENGINE_WHY, "no memory");
    return -ENOMEM;
  }
  g->partitions = partitions;
  int status = hk_kafka_client_open(&g->client, &setup);
  if (status == 0) {
    rd_kafka_topic_partition_list_t *topics = hk_kafka.topic_partition_list_new(1);
    hk_kafka.topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
    const rd_kafka_resp_err_t error = hk_kafka.subscribe(g->client.rk, topics);
    hk_kafka.topic_partition_list_destroy(topics);
    status = error ? hk_kafka_why(g->client.said, topic, hk_kafka.err2str(error)) : 0;
  }
  if (status != 0) {
    snprintf(why, HK_ENGINE_WHY, "%s", g->client.said);
    hk_kafka_client_close(&g->client);
    free(g);
    return status;
  }
  *out = g;
  return 0;
}

void hk_kafka_group_close(struct hk_kafka_group *g)
{
  if (!g)
    return;
  const int64_t until = hk_now() + FAREWELL;
  for (uint32_t i = 0; i < g->partitions; i++)
    g->place[i].lease = NULL;
  give_recalled_back(g);
  rd_kafka_error_t *error = hk_kafka.consumer_close_queue(g->client.rk, g->client.queue);
  while (!error && !hk_kafka.consumer_closed(g->client.rk) && hk_now() < until) {
    rd_kafka_message_t *m = hk_kafka.consumer_poll(g->client.rk, STEP);
    if (m)
      hk_kafka.message_destroy(m);
  }
  if (error)
    hk_kafka.error_destroy(error);
  hk_kafka_client_close(&g->client);
  if (g->recalled)
    hk_kafka.topic_partition_list_destroy(g->recalled);
  free(g);
}

void hk_kafka_group_wait(struct hk_kafka_group *g, uint32_t partition, struct hk_kafka_lease *lease)
{
  struct place *p = &g->place[partition];
  p->lease = lease;
  lease->state = HK_KAFKA_WAITS;
  g->waiting++;
  if (p->ours)
    lease_becomes(lease, HK_KAFKA_OFFERED);
}

uint32_t hk_kafka_group_leave(struct hk_kafka_group *g, uint32_t partition)
{
  g->place[partition].lease = NULL;
  give_recalled_back(g);
  return --g->waiting;
}

int hk_kafka_group_serve(struct hk_kafka_group *g, char why[HK_ENGINE_WHY])
{
  rd_kafka_message_t *m;
  while (g->client.status == 0 && (m = hk_kafka.consumer_poll(g->client.rk, 0)) != NULL) {
    if (m->err)
      (void)hk_kafka_client_error(&g->client, m->err, hk_kafka.message_errstr(m));
    hk_kafka.message_destroy(m);
  }
  if (g->client.status != 0)
    snprintf(why, HK_ENGINE_WHY, "%s", g->client.said);
  return g->client.status;
}
