#include "daemon/server/fleet_list.h"

#include "daemon/bridge/cluster_mail.h"
#include "daemon/server/question.h"
#include "daemon/server/sensor_choice.h"
#include "daemon/server/sensor_list.h"
#include "daemon/server/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define PART_BYTES (900u << 10) /* of an answer */
#define SLOT_BITS 25u           /* of a number that begins a part; above them are */
#define HASH_MOST 0xfffffffu    /* those of a machine: 53 in all, which a number of JSON keeps */
#define SLOT_LAST 99999999u     /* behind all slots */

/* A machine's part. */
struct fleet_part {
  char name[HK_MACHINE_MAX + 1];
  bool away, here;
  struct hk_sensor_list *list;       /* of this machine: until it is done */
  struct hk_mail_question *question; /* of another one: likewise */
  struct hk_buffer rows;
  const char *at, *item; /* the next row to be read; the object of this one; NULL: the end was read */
  size_t size;           /* bytes of the object */
  struct hk_sensor_place place;
  uint32_t count;
  bool more; /* behind the rows there are more, from `place` on */
};

struct hk_fleet_list {
  struct hk_web_sensors asked;
  bool sorted, numbers;        /* numbers: places are given as numbers */
  struct hk_sensor_place from; /* where it begins, */
  char machine[HK_WEB_AFTER];  /* at this machine; "": at the first one */
  uint32_t current;            /* number of the machine whose part is shown, if unsorted */
  uint32_t n;
  struct fleet_part *part; /* in the order of names */
};

bool hk_fleet_is_known(struct hk_server *server)
{
  struct hk_mail_machine *m = calloc(HK_MAIL_MACHINES, sizeof *m);
  const uint32_t n = m ? hk_mail_machines(server->shared.mail, false, m) : 0;
  bool known = false;
  for (uint32_t i = 0; i < n; i++)
    known |= m[i].partitions > 0;
  free(m);
  return known;
}

void hk_fleet_list_free(struct hk_fleet_list *l)
{
  for (uint32_t i = 0; l && i < l->n; i++) {
    hk_sensor_list_abandon(l->part[i].list);
    hk_mail_forget(l->part[i].question);
    hk_buffer_free(&l->part[i].rows);
  }
  if (l)
    free(l->part);
  free(l);
}

/* --- asking ------------------------------------------------------------------------------------------------------------- */

/* Reads where the list begins. False: it is no place. */
static bool fleet_list_begins(struct hk_fleet_list *l, const char *after)
{
  const char *at = strchr(after, '@');
  int end = 0;
  l->from = (struct hk_sensor_place){ .key = l->sorted ? UINT64_MAX : 0 };
  if (!after[0])
    return true;
  if (at)
    snprintf(l->machine, sizeof l->machine, "%s", at + 1);
  if (strspn(after, "0123456789-") != (at ? (size_t)(at - after) : strlen(after)) || after[0] == '-')
    return false;
  if (l->sorted)
    return sscanf(after, "%20" SCNu64 "-%8" SCNu32 "%n", &l->from.key, &l->from.slot, &end) == 2 && end > 0;
  return sscanf(after, "%8" SCNu32 "%n", &l->from.slot, &end) == 1 && end > 0;
}

/* The machines that have partitions. False: no memory. */
static bool fleet_list_machines(struct hk_fleet_list *l, struct hk_server *server)
{
  struct hk_mail_machine *m = calloc(HK_MAIL_MACHINES, sizeof *m);
  const uint32_t n = m ? hk_mail_machines(server->shared.mail, false, m) : 0;
  l->part = calloc((size_t)n + 1, sizeof *l->part);
  for (uint32_t i = 0; i < n && l->part; i++) {
    struct fleet_part *p = &l->part[l->n];
    if (m[i].partitions == 0)
      continue;
    memcpy(p->name, m[i].name, sizeof p->name);
    p->away = m[i].away;
    p->here = strcmp(p->name, hk_cluster_name(server->shared.mail)) == 0;
    l->n++;
  }
  free(m);
  return m && l->part;
}

/* Where a machine's part begins: equal keys of earlier machines were shown, and none of later ones. */
static void fleet_list_place(const struct hk_fleet_list *l, uint32_t i, struct hk_web_sensors *asked)
{
  const int order = strcmp(l->part[i].name, l->machine);
  uint32_t slot = order < 0 ? SLOT_LAST : order > 0 ? 0 : l->from.slot;
  if (l->sorted) {
    snprintf(asked->after, sizeof asked->after, "%" PRIu64 "-%" PRIu32, l->from.key, slot);
    return;
  }
  if (i != l->current) { /* nothing but their number */
    slot = SLOT_LAST;
    asked->limit = 1;
  }
  snprintf(asked->after, sizeof asked->after, "%" PRIu32, slot);
}

static const char *fleet_list_ask_each(struct hk_fleet_list *l, struct hk_server *server, void (*ready)(void *arg), void *arg)
{
  const char *wrong = NULL;
  for (uint32_t i = 0; i < l->n && !wrong; i++) {
    struct hk_web_sensors asked = l->asked;
    struct hk_buffer text = { 0 };
    fleet_list_place(l, i, &asked);
    if (l->part[i].here)
      wrong = hk_sensor_list_ask(server, &asked, ready, arg, &l->part[i].list);
    else if (!l->part[i].away) {
      hk_question_write_list(&text, &asked);
      l->part[i].question = hk_mail_ask(server->shared.mail, l->part[i].name, &text, ready, arg);
      l->part[i].away = !l->part[i].question;
    }
    hk_buffer_free(&text);
  }
  return wrong;
}

const char *hk_fleet_list_ask(struct hk_server *server, const struct hk_web_sensors *asked, void (*ready)(void *arg),
                              void *ready_arg, struct hk_fleet_list **out)
{
  struct hk_sensor_wanted wanted;
  struct hk_web_sensors plain = *asked;
  struct hk_fleet_list *l = calloc(1, sizeof *l);
  plain.after[0] = 0;
  const char *wrong = hk_sensors_want(&plain, &wanted);
  *out = l;
  if (!l || wrong)
    return wrong;
  l->asked = *asked;
  l->asked.rows = true;
  l->sorted = wanted.sort != HK_SENSORS_UNSORTED;
  if (!fleet_list_begins(l, asked->after))
    return "`after` is `next` of the answer before, with the same `sort`";
  if (fleet_list_machines(l, server)) {
    while (l->current < l->n && strcmp(l->part[l->current].name, l->machine) < 0)
      l->current++;
    wrong = fleet_list_ask_each(l, server, ready, ready_arg);
    l->asked.glob = NULL; /* it is the caller's */
    return wrong;
  }
  hk_fleet_list_free(l);
  *out = NULL;
  return NULL;
}

/* The number of a place; never one of a slot alone. */
static uint64_t fleet_list_number(const char *machine, uint32_t slot)
{
  return ((XXH3_64bits(machine, strlen(machine)) & HASH_MOST) | 1) << SLOT_BITS | slot;
}

/* Turns the number of a place into text. False: its machine has gone. */
static bool fleet_list_after(struct hk_server *server, uint64_t number, char after[HK_WEB_AFTER])
{
  struct hk_mail_machine *m = calloc(HK_MAIL_MACHINES, sizeof *m);
  const uint32_t n = m ? hk_mail_machines(server->shared.mail, false, m) : 0, slot = number & ((1u << SLOT_BITS) - 1);
  bool found = number == 0;
  after[0] = 0;
  for (uint32_t i = 0; i < n && !found; i++)
    if ((found = fleet_list_number(m[i].name, slot) == number))
      snprintf(after, HK_WEB_AFTER, "%" PRIu32 "@%s", slot, m[i].name);
  free(m);
  return found;
}

struct hk_fleet_list *hk_fleet_list_begin(struct hk_server *server, const struct hk_sensors_asked *m, void (*ready)(void *arg),
                                          void *ready_arg)
{
  struct hk_web_sensors asked = { .limit = m->limit };
  struct hk_fleet_list *l = NULL;
  char *glob = strndup(m->glob.data ? m->glob.data : "", m->glob.length);
  asked.glob = glob;
  if (glob && fleet_list_after(server, m->after, asked.after) && hk_fleet_list_ask(server, &asked, ready, ready_arg, &l)) {
    hk_fleet_list_free(l);
    l = NULL;
  }
  if (l)
    l->numbers = true;
  free(glob);
  return l;
}

/* --- the answer --------------------------------------------------------------------------------------------------------- */

/* Reads a key and a slot, and what divides them; *at is behind them. False: these are none. */
static bool fleet_list_read_place(const char **at, struct hk_sensor_place *out)
{
  char *end;
  out->key = strtoull(*at, &end, 10);
  if (end == *at || *end != ' ')
    return false;
  *at = end + 1;
  out->slot = (uint32_t)strtoul(*at, &end, 10);
  const bool good = end != *at;
  *at = end;
  return good;
}

/* Reads the next row. A part that is not as it should be ends, and its machine counts as away. */
static void fleet_list_next(struct fleet_part *p)
{
  const char *at = p->at, *end = at ? memchr(at, '\n', (size_t)(p->rows.data + p->rows.size - at)) : NULL;
  char *rest;
  p->item = NULL;
  p->at = NULL;
  p->more = false;
  if (!at)
    return;
  if (end && at[0] == '.') {
    p->count = (uint32_t)strtoul(at + 1, &rest, 10);
    at = rest + 1;
    p->more = rest < end && fleet_list_read_place(&at, &p->place);
    p->away |= p->more ? at != end : rest != end;
    return;
  }
  if (!end || !fleet_list_read_place(&at, &p->place) || at[0] != ' ' || at[1] != '{' || end[-1] != '}') {
    p->away = true;
    return;
  }
  p->item = at + 1;
  p->size = (size_t)(end - p->item);
  p->at = end + 1;
}

/* Whether a part has its rows, or will have none. */
static bool fleet_list_has(struct fleet_part *p)
{
  if (p->list) {
    if (!hk_sensor_list_result(p->list, &p->rows))
      return false;
    p->list = NULL;
  } else if (p->question) {
    const unsigned code = hk_mail_answered(p->question, &p->rows);
    if (code == 0)
      return false;
    hk_mail_forget(p->question);
    p->question = NULL;
    p->away |= code != 200;
  } else if (!p->at) {
    return true;
  }
  hk_buffer_put(&p->rows, "", 1); /* numbers are read up to it */
  p->away |= p->rows.failed;
  return true;
}

/* The number of all sensors of a part's machine, from the last row. */
static uint32_t fleet_list_count(const struct fleet_part *p)
{
  const char *line = p->rows.data + p->rows.size - 1; /* behind it is a 0 */
  while (line > p->rows.data && line[-1] == '\n')
    line--;
  while (line > p->rows.data && line[-1] != '\n')
    line--;
  return line[0] == '.' ? (uint32_t)strtoul(line + 1, NULL, 10) : 0;
}

static const struct fleet_part *fleet_list_first(const struct hk_fleet_list *l)
{
  const struct fleet_part *best = NULL;
  for (uint32_t i = 0; i < l->n; i++) {
    const struct fleet_part *p = &l->part[i];
    if ((p->item || p->more) && (!best || p->place.key > best->place.key))
      best = p;
  }
  return best;
}

/* Appends an object, with its machine first. */
static void fleet_list_show(struct hk_buffer *out, const struct fleet_part *p, bool first)
{
  hk_buffer_print(out, "%s{\"machine\":\"%s\",", first ? "" : ",", p->name);
  hk_buffer_put(out, p->item + 1, p->size - 1);
}

static void fleet_list_rest(const struct hk_fleet_list *l, struct hk_buffer *out, const struct fleet_part *next)
{
  uint64_t count = 0;
  const char *comma = "";
  for (uint32_t i = 0; i < l->n; i++)
    count += l->part[i].count;
  hk_buffer_print(out, "],\"count\":%" PRIu64, count);
  if (next && l->sorted)
    hk_buffer_print(out, ",\"next\":\"%" PRIu64 "-%" PRIu32 "@%s\"", next->place.key, next->place.slot, next->name);
  else if (next || (!l->sorted && l->current + 1 < l->n)) {
    const char *machine = next ? next->name : l->part[l->current + 1].name;
    const uint32_t slot = next ? next->place.slot : 0;
    if (l->numbers)
      hk_buffer_print(out, ",\"next\":%" PRIu64, fleet_list_number(machine, slot));
    else
      hk_buffer_print(out, ",\"next\":\"%" PRIu32 "@%s\"", slot, machine);
  }
  hk_buffer_print(out, ",\"away\":[");
  for (uint32_t i = 0; i < l->n; i++)
    if (l->part[i].away) {
      hk_buffer_print(out, "%s\"%s\"", comma, l->part[i].name);
      comma = ",";
    }
  hk_buffer_print(out, "]}\n");
}

bool hk_fleet_list_result(struct hk_fleet_list *l, struct hk_buffer *out)
{
  const struct fleet_part *p;
  uint32_t shown = 0;
  for (uint32_t i = 0; i < l->n; i++)
    if (!fleet_list_has(&l->part[i]))
      return false;
  for (uint32_t i = 0; i < l->n; i++) {
    struct fleet_part *one = &l->part[i];
    one->at = one->away ? NULL : one->rows.data;
    one->count = one->at ? fleet_list_count(one) : 0;
    fleet_list_next(one);
    one->more = one->more && (l->sorted || i == l->current);
  }
  hk_buffer_print(out, "{\"%s\":[", l->asked.lines ? "models" : l->asked.groups ? "groups" : "sensors");
  while ((p = fleet_list_first(l)) != NULL && p->item && shown < l->asked.limit && out->size < PART_BYTES) {
    struct fleet_part *one = &l->part[p - l->part];
    fleet_list_show(out, one, shown++ == 0);
    fleet_list_next(one);
  }
  fleet_list_rest(l, out, p);
  return true;
}
