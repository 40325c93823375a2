#include "daemon/bridge/sparkplug.h"

#include "daemon/base/grow.h"
#include "daemon/bridge/sparkplug.pb-c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN 10000000000ll /* ns between two requests for a rebirth of a node */
#define MS 1000000ll

enum { INT8 = 1, INT16, INT32, INT64 }; /* signed integer datatypes */

struct metric {
  uint64_t alias;
  uint32_t datatype;
  char *name;
};

struct node {
  char *id; /* GROUP/NODE */
  bool born;
  uint8_t next;           /* seq of the next message */
  int64_t asked;          /* ns: when a rebirth was requested */
  struct metric *metrics; /* by alias */
  uint32_t n_metrics, metrics_room;
};

struct hk_sparkplug {
  struct node *nodes; /* by id */
  uint32_t n_nodes, nodes_room;
};

struct hk_sparkplug *hk_sparkplug_new(void)
{
  return calloc(1, sizeof(struct hk_sparkplug));
}

static void sparkplug_forget(struct node *n)
{
  for (uint32_t i = 0; i < n->n_metrics; i++)
    free(n->metrics[i].name);
  n->n_metrics = 0;
}

void hk_sparkplug_free(struct hk_sparkplug *s)
{
  for (uint32_t i = 0; s && i < s->n_nodes; i++) {
    sparkplug_forget(&s->nodes[i]);
    free(s->nodes[i].metrics);
    free(s->nodes[i].id);
  }
  if (s)
    free(s->nodes);
  free(s);
}

/* The next level of a topic. False: it is empty, or too long. */
static bool sparkplug_level(const char **at, char *out, size_t size)
{
  const size_t length = strcspn(*at, "/");
  if (length == 0 || length >= size)
    return false;
  memcpy(out, *at, length);
  out[length] = 0;
  *at += length + ((*at)[length] == '/');
  return true;
}

bool hk_sparkplug_topic_read(const char *topic, struct hk_sparkplug_topic *out)
{
  static const size_t before = sizeof HK_SPARKPLUG_SPACE - 1;
  const char *at = topic + before;
  out->device[0] = 0;
  return strncmp(topic, HK_SPARKPLUG_SPACE, before) == 0 && sparkplug_level(&at, out->group, sizeof out->group) &&
         sparkplug_level(&at, out->type, sizeof out->type) && sparkplug_level(&at, out->node, sizeof out->node) &&
         (*at == 0 || (sparkplug_level(&at, out->device, sizeof out->device) && *at == 0));
}

/* Finds the node of a topic, or makes it. NULL: no memory, or too many nodes. */
static struct node *node_of(struct hk_sparkplug *s, const struct hk_sparkplug_topic *topic)
{
  char id[2 * HK_SPARKPLUG_TOPIC];
  uint32_t low = 0, high = s->n_nodes;
  const size_t group = strlen(topic->group);
  memcpy(id, topic->group, group);
  id[group] = '/';
  strcpy(id + group + 1, topic->node);
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const int order = strcmp(s->nodes[middle].id, id);
    if (order == 0)
      return &s->nodes[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  struct node *nodes = s->n_nodes < HK_SPARKPLUG_NODES ? hk_grow(s->nodes, s->n_nodes, &s->nodes_room, sizeof *nodes, 16) : NULL;
  char *copy = nodes ? strdup(id) : NULL;
  if (nodes)
    s->nodes = nodes;
  if (!copy)
    return NULL;
  memmove(nodes + low + 1, nodes + low, (s->n_nodes++ - low) * sizeof *nodes);
  nodes[low] = (struct node){ .id = copy };
  return &nodes[low];
}

/* The place of the metric of an alias, or for it. */
static uint32_t sparkplug_place_of(const struct node *n, uint64_t alias)
{
  uint32_t low = 0, high = n->n_metrics;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (n->metrics[middle].alias < alias)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const struct metric *metric_of(const struct node *n, uint64_t alias)
{
  const uint32_t at = sparkplug_place_of(n, alias);
  return at < n->n_metrics && n->metrics[at].alias == alias ? &n->metrics[at] : NULL;
}

/* Adds a metric of a birth. False: no memory, or too many. */
static bool sparkplug_remember(struct node *n, const Sparkplug__Metric *m)
{
  const uint32_t at = sparkplug_place_of(n, m->alias);
  char *name = strdup(m->name);
  if (!name)
    return false;
  if (at < n->n_metrics && n->metrics[at].alias == m->alias) {
    free(n->metrics[at].name);
  } else {
    struct metric *metrics =
        n->n_metrics < HK_SPARKPLUG_METRICS ? hk_grow(n->metrics, n->n_metrics, &n->metrics_room, sizeof *metrics, 16) : NULL;
    if (!metrics) {
      free(name);
      return false;
    }
    n->metrics = metrics;
    memmove(metrics + at + 1, metrics + at, (n->n_metrics++ - at) * sizeof *metrics);
  }
  n->metrics[at] = (struct metric){ m->alias, m->datatype, name };
  return true;
}

/* False: it is not a number. */
static bool sparkplug_number_of(const Sparkplug__Metric *m, uint32_t datatype, double *value)
{
  if (m->has_is_null && m->is_null)
    return false;
  if (m->has_double_value)
    *value = m->double_value;
  else if (m->has_float_value)
    *value = (double)m->float_value;
  else if (m->has_boolean_value)
    *value = m->boolean_value;
  else if (m->has_int_value)
    *value = datatype == INT8    ? (double)(int8_t)m->int_value
             : datatype == INT16 ? (double)(int16_t)m->int_value
             : datatype == INT32 ? (double)(int32_t)m->int_value
                                 : (double)m->int_value;
  else if (m->has_long_value)
    *value = datatype == INT64 ? (double)(int64_t)m->long_value : (double)m->long_value;
  else
    return false;
  return isfinite(*value);
}

static int64_t ns_of(bool has, uint64_t ms)
{
  return has && ms <= (uint64_t)(INT64_MAX / MS) ? (int64_t)ms * MS : 0;
}

/* Whether the metric belongs to the protocol, not to the plant. */
static bool is_control(const char *name)
{
  return strcmp(name, "bdSeq") == 0 || strncmp(name, "Node Control/", 13) == 0 || strncmp(name, "Device Control/", 15) == 0;
}

/* False: an alias is unknown. */
static bool take_metrics(const struct node *n, const Sparkplug__Payload *p, hk_sparkplug_take *take, void *arg)
{
  bool known = true;
  for (size_t i = 0; i < p->n_metrics; i++) {
    const Sparkplug__Metric *m = p->metrics[i];
    const struct metric *born = m->has_alias ? metric_of(n, m->alias) : NULL;
    const char *name = m->name && m->name[0] ? m->name : born ? born->name : NULL;
    double value;
    if (!name)
      known = false;
    else if (!is_control(name) && sparkplug_number_of(m, m->has_datatype ? m->datatype : born ? born->datatype : 0, &value))
      take(arg, name, value, m->has_timestamp ? ns_of(true, m->timestamp) : ns_of(p->has_timestamp, p->timestamp));
  }
  return known;
}

static const char *read_birth(struct node *n, bool of_node, const Sparkplug__Payload *p)
{
  if (of_node) {
    sparkplug_forget(n);
    n->born = true;
  }
  for (size_t i = 0; i < p->n_metrics; i++)
    if (p->metrics[i]->has_alias && p->metrics[i]->name && p->metrics[i]->name[0] && !sparkplug_remember(n, p->metrics[i]))
      return "no memory for its metrics";
  return NULL;
}

static const char *read_payload(struct node *n, const struct hk_sparkplug_topic *topic, const Sparkplug__Payload *p, bool *lacks,
                                hk_sparkplug_take *take, void *arg)
{
  const bool of_node = topic->device[0] == 0, birth = strcmp(topic->type + 1, "BIRTH") == 0;
  *lacks = !n->born && !(birth && of_node);
  if (p->has_seq && n->born && !(birth && of_node) && p->seq != n->next)
    *lacks = true;
  n->next = p->has_seq ? (uint8_t)(p->seq + 1) : n->next;
  const char *wrong = birth ? read_birth(n, of_node, p) : NULL;
  if (!wrong && strcmp(topic->type + 1, "DEATH") != 0 && !take_metrics(n, p, take, arg)) {
    *lacks = true;
    wrong = "it has aliases without a birth; asking for a rebirth";
  }
  return wrong;
}

const char *hk_sparkplug_read(struct hk_sparkplug *s, const struct hk_sparkplug_topic *topic, const void *data, size_t size,
                              int64_t now, bool *rebirth, hk_sparkplug_take *take, void *arg)
{
  static const char *const types[] = { "NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH" };
  bool known = false, lacks = false;
  *rebirth = false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    known |= strcmp(topic->type, types[i]) == 0 && (types[i][0] == 'D') == (topic->device[0] != 0);
  if (!known) /* commands to nodes, states of hosts */
    return NULL;
  struct node *n = node_of(s, topic);
  Sparkplug__Payload *p = n ? sparkplug__payload__unpack(NULL, size, data) : NULL;
  if (!p)
    return n ? "it is not a Sparkplug B payload" : "no memory for its node";
  if (strcmp(topic->type, "NDEATH") == 0) {
    n->born = false;
    sparkplug__payload__free_unpacked(p, NULL);
    return NULL;
  }
  const char *wrong = read_payload(n, topic, p, &lacks, take, arg);
  sparkplug__payload__free_unpacked(p, NULL);
  *rebirth = lacks && (n->asked == 0 || now - n->asked >= AGAIN);
  n->asked = *rebirth ? now : n->asked;
  return wrong;
}

size_t hk_sparkplug_rebirth(int64_t time, uint8_t out[128])
{
  char name[] = "Node Control/Rebirth";
  Sparkplug__Metric m = SPARKPLUG__METRIC__INIT, *metrics[] = { &m };
  Sparkplug__Payload p = SPARKPLUG__PAYLOAD__INIT;
  m.name = name;
  m.has_timestamp = m.has_datatype = m.has_boolean_value = m.boolean_value = p.has_timestamp = true;
  m.datatype = 11;
  m.timestamp = p.timestamp = (uint64_t)(time / MS);
  p.metrics = metrics;
  p.n_metrics = 1;
  return sparkplug__payload__get_packed_size(&p) <= 128 ? sparkplug__payload__pack(&p, out) : 0;
}
