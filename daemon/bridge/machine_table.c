#include "daemon/bridge/machine_table.h"

#include "daemon/base/log.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define NOTICE_MOST (1u << 20)    /* bytes; one of all partitions has a tenth of it */
#define FORGOTTEN (3600 * SECOND) /* a machine that is away for longer is no longer shown */

static void machine_table_remove(struct hk_machine_table *t, uint32_t i)
{
  free(t->machine[i].report);
  free(t->machine[i].held);
  memmove(&t->machine[i], &t->machine[i + 1], (--t->n - i) * sizeof *t->machine);
}

void hk_machine_table_init(struct hk_machine_table *t)
{
  pthread_mutex_init(&t->lock, NULL);
}

void hk_machine_table_free(struct hk_machine_table *t)
{
  while (t->n > 0)
    machine_table_remove(t, t->n - 1);
  pthread_mutex_destroy(&t->lock);
}

/* The partitions of a machine, by its report, and whether it is a scorer. NULL: the report is no object of JSON, or there is no
 * memory. */
static struct hk_machine_holding *machine_table_held(const char *report, uint32_t *n, bool *scores)
{
  cJSON *json = cJSON_ParseWithOpts(report, NULL, true);
  const cJSON *held = cJSON_GetObjectItemCaseSensitive(json, "held"), *one;
  struct hk_machine_holding *out = cJSON_IsObject(json) ? calloc((size_t)cJSON_GetArraySize(held) + 1, sizeof *out) : NULL;
  *n = 0;
  *scores = cJSON_IsArray(held); /* a gateway has none */
  cJSON_ArrayForEach(one, held)
  {
    const double partition = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "partition"));
    const double epoch = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(one, "epoch"));
    if (out && partition >= 0 && partition < HK_PARTITIONS_MAX && epoch >= 0 && epoch < 9e15)
      out[(*n)++] = (struct hk_machine_holding){ (uint32_t)partition, (uint64_t)epoch };
  }
  cJSON_Delete(json);
  return out;
}

void hk_machine_table_take(struct hk_machine_table *t, const struct hk_letter *l)
{
  uint32_t i = 0, n_held = 0;
  bool scores = false;
  if (l->size > NOTICE_MOST)
    return;
  char *report = l->size > 0 ? strndup(l->body, l->size) : NULL;
  struct hk_machine_holding *held = report ? machine_table_held(report, &n_held, &scores) : NULL;
  if (l->size > 0 && !held) {
    free(report);
    return;
  }
  pthread_mutex_lock(&t->lock);
  while (i < t->n && strcmp(t->machine[i].name, l->machine) < 0)
    i++;
  const bool known = i < t->n && strcmp(t->machine[i].name, l->machine) == 0;
  if (known)
    machine_table_remove(t, i);
  if (held && t->n < HK_MAIL_MACHINES) {
    memmove(&t->machine[i + 1], &t->machine[i], (t->n++ - i) * sizeof *t->machine);
    t->machine[i] =
        (struct hk_machine_row){ .heard = hk_now(), .report = report, .held = held, .n_held = n_held, .scores = scores };
    memcpy(t->machine[i].name, l->machine, sizeof l->machine);
    report = NULL;
    held = NULL;
  }
  pthread_mutex_unlock(&t->lock);
  free(report);
  free(held);
}

void hk_machine_table_forget(struct hk_machine_table *t)
{
  const int64_t now = hk_now();
  pthread_mutex_lock(&t->lock);
  for (uint32_t i = t->n; i-- > 0;)
    if (now - t->machine[i].heard > FORGOTTEN)
      machine_table_remove(t, i);
  pthread_mutex_unlock(&t->lock);
}

/* The machine that reports to have a partition with the latest epoch; NULL: none does. Under the lock. */
static const struct hk_machine_row *machine_table_holder_of(const struct hk_machine_table *t, uint32_t partition, uint64_t *epoch)
{
  const struct hk_machine_row *found = NULL;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t k = 0; k < t->machine[i].n_held; k++) {
      const struct hk_machine_holding *h = &t->machine[i].held[k];
      if (h->partition != partition || (found && h->epoch <= *epoch))
        continue;
      found = &t->machine[i];
      *epoch = h->epoch;
    }
  return found;
}

bool hk_machine_table_holder(struct hk_machine_table *t, uint32_t partition, struct hk_holder *out)
{
  pthread_mutex_lock(&t->lock);
  const struct hk_machine_row *found = machine_table_holder_of(t, partition, &out->epoch);
  if (found)
    memcpy(out->machine, found->name, sizeof out->machine);
  pthread_mutex_unlock(&t->lock);
  return found != NULL;
}

uint32_t hk_machine_table_list(struct hk_machine_table *t, bool reports, struct hk_mail_machine out[HK_MAIL_MACHINES])
{
  const int64_t now = hk_now();
  pthread_mutex_lock(&t->lock);
  const uint32_t n = t->n;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_machine_row *machine = &t->machine[i];
    out[i] = (struct hk_mail_machine){ .silent = now - machine->heard, .report = reports ? strdup(machine->report) : NULL };
    memcpy(out[i].name, machine->name, sizeof out[i].name);
    out[i].scores = machine->scores;
    out[i].away = out[i].silent > HK_MAIL_SILENCE * SECOND;
    for (uint32_t k = 0; k < machine->n_held; k++) {
      uint64_t epoch;
      out[i].partitions += machine_table_holder_of(t, machine->held[k].partition, &epoch) == machine;
    }
  }
  pthread_mutex_unlock(&t->lock);
  return n;
}
