#include "daemon/server/distant_names.h"

#include "daemon/bridge/cluster.h"
#include "daemon/sensors/companions.h"
#include "daemon/server/question.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 16384u /* slots of an answer */
#define PIECE 256u  /* slots read at a time */
#define SLOTS_MOST (1u << 24)
#define EVERY INT64_C(2000000000)
#define AGAIN INT64_C(60000000000) /* ns between two readings of all slots, if others came meanwhile */

/* What one machine has told. */
struct teller {
  char name[HK_MACHINE_MAX + 1];
  bool there; /* it has partitions */
  struct hk_mail_question *question;
  int64_t asked, began; /* ns: the last question; the last reading from slot 0 on */
  uint32_t next;        /* slot to be asked for */
  bool more;            /* behind it there are others */
  uint64_t added;       /* sensors that it had added when that reading began */
  uint32_t sensors;     /* that it has */
  struct share { /* of a reading from slot 0 on: names that came, and of them those of sensors that belong to each section */
    uint32_t names, taken[HK_INCIDENTS_MOST];
  } now, last; /* the current reading, and the last whole one */
};

struct hk_distant_names {
  struct hk_distant_hooks hooks;
  struct hk_mail_machine machine[HK_MAIL_MACHINES];
  struct teller teller[HK_MAIL_MACHINES];
  uint32_t n;
};

/* --- answering ---------------------------------------------------------------------------------------------------------- */

void hk_distant_tell(struct hk_registry *r, uint32_t from, struct hk_buffer *out)
{
  const uint64_t added = hk_registry_added(r); /* before the slots: what comes meanwhile is asked for again */
  const char *comma = "";
  hk_registry_read(r); /* the numbers are of one moment */
  const uint32_t sensors = hk_registry_count(r) - hk_registry_count_derived(r), slots = hk_registry_slots(r);
  hk_registry_read_end(r);
  const uint32_t upto = from >= slots ? slots : slots - from < PAGE ? slots : from + PAGE;
  hk_buffer_print(out, "{\"added\":%" PRIu64 ",\"sensors\":%" PRIu32 ",\"slots\":%" PRIu32 ",\"next\":%" PRIu32 ",\"names\":[",
                  added, sensors, slots, upto);
  for (uint32_t slot = from; slot < upto;) {
    hk_registry_read(r);
    for (const uint32_t end = upto - slot < PIECE ? upto : slot + PIECE; slot < end; slot++) {
      if (!hk_registry_holds(r, slot) || hk_registry_derived(r, slot))
        continue;
      const struct hk_string name = hk_registry_name(r, slot);
      hk_buffer_print(out, "%s", comma);
      hk_json_string(out, name.data, name.length);
      comma = ",";
    }
    hk_registry_read_end(r);
  }
  hk_buffer_print(out, "]}");
}

/* --- asking ------------------------------------------------------------------------------------------------------------- */

struct hk_distant_names *hk_distant_new(const struct hk_distant_hooks *hooks)
{
  struct hk_distant_names *d = calloc(1, sizeof *d);
  if (d)
    d->hooks = *hooks;
  return d;
}

void hk_distant_free(struct hk_distant_names *d)
{
  for (uint32_t i = 0; d && i < d->n; i++)
    hk_mail_forget(d->teller[i].question);
  free(d);
}

static void teller_begin(struct teller *t)
{
  t->began = hk_now();
  t->next = 0;
  t->more = true;
}

void hk_distant_again(struct hk_distant_names *d)
{
  for (uint32_t i = 0; i < d->n; i++) {
    hk_mail_forget(d->teller[i].question); /* its answer is about slots that are to be asked for again */
    d->teller[i].question = NULL;
    teller_begin(&d->teller[i]);
  }
}

/* Takes over what an answer says. Returns whether there were names. */
static bool teller_take(struct hk_distant_names *d, struct teller *t, const struct hk_buffer *answer)
{
  cJSON *json = cJSON_ParseWithLength(answer->data, answer->size);
  const cJSON *names = cJSON_GetObjectItemCaseSensitive(json, "names"), *name;
  const double added = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "added"));
  const double slots = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "slots"));
  const double next = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "next"));
  const double sensors = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(json, "sensors"));
  uint32_t n = 0;
  t->more = false;
  if (cJSON_IsArray(names) && added >= 0 && added < 9e15 && slots >= 0 && slots <= SLOTS_MOST && next >= 0 && next <= slots &&
      sensors >= 0 && sensors <= slots) {
    if (t->next == 0)
      t->now = (struct share){ 0 };
    cJSON_ArrayForEach(name, names) if (cJSON_IsString(name) && name->valuestring[0])
    {
      const int section = d->hooks.learn(d->hooks.arg, (struct hk_string){ name->valuestring, strlen(name->valuestring) });
      if (section >= 0)
        t->now.taken[section]++;
      t->now.names++;
      n++;
    }
    if (t->next == 0)
      t->added = (uint64_t)added;
    t->sensors = (uint32_t)sensors;
    t->next = (uint32_t)next;
    t->more = next < slots;
    if (!t->more)
      t->last = t->now;
    if (!t->more && (uint64_t)added != t->added && hk_now() - t->began >= AGAIN)
      teller_begin(t);
  }
  cJSON_Delete(json);
  return n > 0;
}

static bool teller_answered(struct hk_distant_names *d, struct teller *t)
{
  struct hk_buffer answer = { 0 };
  const unsigned code = hk_mail_answered(t->question, &answer);
  bool names = false;
  if (code != 0) {
    hk_mail_forget(t->question);
    t->question = NULL;
    if (code == 200 && !answer.failed)
      names = teller_take(d, t, &answer);
    else
      t->more = false; /* it is asked again later */
  }
  hk_buffer_free(&answer);
  return names;
}

static void teller_ask(const struct hk_distant_names *d, struct teller *t, struct hk_cluster *mail)
{
  struct hk_buffer text = { 0 };
  t->asked = hk_now();
  hk_question_write_names(&text, t->next);
  t->question = hk_mail_ask(mail, t->name, &text, d->hooks.ready, d->hooks.arg);
  hk_buffer_free(&text);
}

static struct teller *distant_find(struct hk_distant_names *d, const char *name)
{
  uint32_t i = 0;
  while (i < d->n && strcmp(d->teller[i].name, name) != 0)
    i++;
  if (i == HK_MAIL_MACHINES) /* one that has gone makes room */
    for (i = 0; i < d->n && (d->teller[i].there || d->teller[i].question);)
      i++;
  if (i == HK_MAIL_MACHINES)
    return NULL;
  struct teller *t = &d->teller[i];
  d->n += i == d->n;
  if (strcmp(t->name, name) != 0) {
    *t = (struct teller){ 0 };
    memcpy(t->name, name, strlen(name) + 1);
    teller_begin(t);
  }
  return t;
}

bool hk_distant_turn(struct hk_distant_names *d, struct hk_cluster *mail)
{
  const uint32_t n = hk_mail_machines(mail, false, d->machine);
  bool names = false;
  for (uint32_t i = 0; i < d->n; i++)
    d->teller[i].there = false;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_mail_machine *m = &d->machine[i];
    struct teller *t = m->partitions > 0 && strcmp(m->name, hk_cluster_name(mail)) != 0 ? distant_find(d, m->name) : NULL;
    if (t)
      t->there = true;
    if (t && !t->question && !m->away && (t->more || hk_now() - t->asked >= EVERY))
      teller_ask(d, t, mail);
  }
  for (uint32_t i = 0; i < d->n; i++)
    if (d->teller[i].question)
      names |= teller_answered(d, &d->teller[i]);
  return names;
}

/* A machine's sensors that belong to a section: their share of the names that it told in its last whole reading, or in the first,
 * so far. Before any name: all. */
static uint32_t teller_count(const struct teller *t, uint32_t section)
{
  const struct share *s = t->last.names > 0 ? &t->last : &t->now;
  return s->names > 0 ? (uint32_t)((uint64_t)t->sensors * s->taken[section] / s->names) : t->sensors;
}

uint32_t hk_distant_count(const struct hk_distant_names *d, uint32_t section)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->n; i++)
    count += d->teller[i].there ? teller_count(&d->teller[i], section) : 0;
  return count;
}
