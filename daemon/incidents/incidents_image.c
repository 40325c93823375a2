/* The image of a fleet's incidents: a head, then the tail, the purse, the names with what was told of them, the open incidents in
 * their order, and what nodes remember. Numbers are as the machine has them; sensors and nodes are named by their numbers, which
 * come again when the names are learnt in the same order. */
#include "daemon/incidents/incidents_image.h"

#include "daemon/incidents/incidents_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC UINT64_C(0x34636e6966666b68)      /* "hkffinc4" */
#define MAGIC_DEAF UINT64_C(0x32636e6966666b68) /* the same, without how far the data were, */
#define MAGIC_MUTE UINT64_C(0x31636e6966666b68) /* and without what members said */
#define NOTHING UINT32_MAX

struct head {
  uint64_t magic, size; /* of what is behind the head */
  uint64_t checksum;    /* XXH3 of that, with the size for a seed */
  int64_t interval;
};

/* --- writing ------------------------------------------------------------------------------------------------------------ */

static void incidents_image_put(struct hk_buffer *b, const void *bytes, size_t n)
{
  hk_buffer_put(b, bytes, n);
}
static void put_u32(struct hk_buffer *b, uint32_t x)
{
  incidents_image_put(b, &x, sizeof x);
}
static void put_u64(struct hk_buffer *b, uint64_t x)
{
  incidents_image_put(b, &x, sizeof x);
}
static void incidents_image_put_time(struct hk_buffer *b, int64_t x)
{
  incidents_image_put(b, &x, sizeof x);
}
static void put_real(struct hk_buffer *b, double x)
{
  incidents_image_put(b, &x, sizeof x);
}
static void incidents_image_put_name(struct hk_buffer *b, const char *text, size_t length)
{
  put_u32(b, (uint32_t)length);
  incidents_image_put(b, text, length);
}

static void put_state(struct hk_buffer *b, const struct hk_incidents *all)
{
  const struct hk_fleet_tail *t = &all->tail;
  incidents_image_put(b, t->count, sizeof t->count);
  incidents_image_put(b, t->at_least, sizeof t->at_least);
  put_real(b, t->exposure);
  put_real(b, t->raises);
  put_real(b, t->weight);
  incidents_image_put_time(b, t->time);
  incidents_image_put_time(b, t->begin);
  put_u32(b, (t->begun ? 1u : 0) | (t->summed ? 2u : 0) | (all->budget.begun ? 4u : 0) | (all->begun ? 8u : 0));
  put_real(b, all->budget.tokens);
  incidents_image_put_time(b, all->budget.time);
  incidents_image_put_time(b, all->time);
  put_u64(b, all->last_id);
  put_u32(b, all->sensors);
  incidents_image_put(b, &all->counts, sizeof all->counts);
}

static void put_sensor(struct hk_buffer *b, const struct hk_fleet_sensor *s)
{
  incidents_image_put_name(b, s->leaf->name.data, s->leaf->name.length);
  put_u32(b, s->n_groups);
  for (uint32_t i = 0; i < s->n_groups; i++) /* without the brackets */
    incidents_image_put_name(b, s->groups[i].above->name.data + 1, s->groups[i].above->name.length - 2);
  incidents_image_put_time(b, s->told_until);
  put_real(b, s->told_R);
}

static void put_incident(struct hk_buffer *b, const struct hk_incident *i)
{
  put_u64(b, i->id);
  incidents_image_put_time(b, i->open);
  incidents_image_put_time(b, i->last);
  incidents_image_put_time(b, i->heard);
  incidents_image_put_time(b, i->own);
  incidents_image_put_time(b, i->told_at);
  put_real(b, i->R);
  put_real(b, i->S);
  put_real(b, i->company);
  put_real(b, i->counted);
  put_real(b, i->weight);
  put_real(b, i->told_R);
  put_u32(b, i->node ? i->node->number : NOTHING);
  put_u32(b, (i->touched ? 1u : 0) | (i->told ? 2u : 0));
  put_u32(b, i->told_n);
  put_u32(b, i->updates);
  put_u32(b, i->n);
  for (const struct hk_fleet_sensor *m = i->members; m; m = m->next) {
    put_u32(b, m->number);
    put_real(b, m->S);
    incidents_image_put_time(b, m->raised);
    incidents_image_put_time(b, m->instant);
    put_u32(b, m->channels);
    put_u32(b, m->strongest);
    incidents_image_put_name(b, m->what ? m->what : "", m->what ? strlen(m->what) : 0);
  }
}

/* A child of a node is told by its own number, a child of a group by that of its sensor, which is itself. */
static void put_node(struct hk_buffer *b, const struct hk_fleet_node *n)
{
  put_u32(b, n->number);
  put_u32(b, n->sick ? n->sick->number : NOTHING);
  incidents_image_put_time(b, n->newcomer);
  put_u32(b, n->n_active);
  for (uint32_t i = 0; i < n->n_active; i++) {
    const struct hk_fleet_child *c = n->active[i].child;
    const struct hk_fleet_node *of = (const struct hk_fleet_node *)((const char *)c - offsetof(struct hk_fleet_node, self));
    put_u32(b, n->group ? c->sensor->number : of->number);
    put_u32(b, c->sensor->number);
    put_real(b, c->S);
    incidents_image_put_time(b, c->raised);
  }
}

static bool has_state(const struct hk_fleet_node *n)
{
  return n->sick || n->n_active > 0;
}

void hk_incidents_write(struct hk_incidents *all, struct hk_buffer *out)
{
  hk_fleet_order(&all->names);
  const size_t begin = out->size;
  struct head head = { .magic = MAGIC, .interval = all->rules.interval };
  uint32_t nodes = 0;
  incidents_image_put(out, (const char *)&head, sizeof head);
  put_state(out, all);
  put_u32(out, all->names.n_sensors);
  for (uint32_t i = 0; i < all->names.n_sensors; i++)
    put_sensor(out, all->names.sensors[i]);
  put_u32(out, all->counts.open);
  for (const struct hk_incident *i = all->oldest; i; i = i->newer)
    put_incident(out, i);
  for (uint32_t i = 0; i < all->names.n_nodes; i++)
    nodes += has_state(all->names.nodes[i]);
  put_u32(out, nodes);
  for (uint32_t i = 0; i < all->names.n_nodes; i++)
    if (has_state(all->names.nodes[i]))
      put_node(out, all->names.nodes[i]);
  if (out->failed)
    return;
  head.size = out->size - begin - sizeof head;
  head.checksum = XXH3_64bits_withSeed(out->data + begin + sizeof head, head.size, head.size);
  memcpy(out->data + begin, &head, sizeof head);
}

/* --- reading ------------------------------------------------------------------------------------------------------------ */

struct in {
  const char *at;
  size_t left;
  bool bad, deaf, mute;
};

static const char *incidents_image_take(struct in *in, size_t n)
{
  if (in->bad || n > in->left) {
    in->bad = true;
    return NULL;
  }
  const char *at = in->at;
  in->at += n;
  in->left -= n;
  return at;
}
static void incidents_image_get(struct in *in, void *out, size_t n)
{
  const char *at = incidents_image_take(in, n);
  if (at)
    memcpy(out, at, n);
  else
    memset(out, 0, n);
}
static uint32_t get_u32(struct in *in)
{
  uint32_t x;
  incidents_image_get(in, &x, sizeof x);
  return x;
}
static uint64_t get_u64(struct in *in)
{
  uint64_t x;
  incidents_image_get(in, &x, sizeof x);
  return x;
}
static int64_t get_time(struct in *in)
{
  int64_t x;
  incidents_image_get(in, &x, sizeof x);
  in->bad |= x > HK_INCIDENT_TIME_MOST || x < -HK_INCIDENT_TIME_MOST;
  return x;
}
/* A number from `least` to `most`. */
static double get_real(struct in *in, double least, double most)
{
  double x;
  incidents_image_get(in, &x, sizeof x);
  in->bad |= !(x >= least && x <= most);
  return x;
}
static struct hk_string get_name(struct in *in)
{
  const uint32_t length = get_u32(in);
  in->bad |= length > HK_FLEET_NAME_MOST;
  const char *text = incidents_image_take(in, length);
  return (struct hk_string){ text, text ? length : 0 };
}
/* One of so many things. */
static uint32_t get_number(struct in *in, uint32_t of)
{
  const uint32_t x = get_u32(in);
  in->bad |= x >= of;
  return x;
}

#define HUGE_REAL 1e300

static void get_state(struct in *in, struct hk_incidents *all)
{
  struct hk_fleet_tail *t = &all->tail;
  for (uint32_t i = 0; i < HK_TAIL_BINS; i++)
    t->count[i] = get_real(in, -HUGE_REAL, HUGE_REAL);
  for (uint32_t i = 0; i < HK_TAIL_BINS; i++)
    t->at_least[i] = get_real(in, -HUGE_REAL, HUGE_REAL);
  t->exposure = get_real(in, 0, HUGE_REAL);
  t->raises = get_real(in, 0, HUGE_REAL);
  t->weight = get_real(in, 1, HUGE_REAL);
  t->time = get_time(in);
  t->begin = get_time(in);
  const uint32_t flags = get_u32(in);
  t->begun = flags & 1;
  t->summed = flags & 2;
  all->budget.begun = flags & 4;
  all->begun = flags & 8;
  all->budget.tokens = fmin(get_real(in, 0, HUGE_REAL), all->budget.full);
  all->budget.time = get_time(in);
  all->time = get_time(in);
  all->last_id = get_u64(in);
  in->bad |= all->last_id > INT64_MAX; /* the next id would be 0 some day */
  all->sensors = get_u32(in);
  incidents_image_get(in, &all->counts, sizeof all->counts);
  all->counts.open = all->counts.members = 0;
}

static int get_sensor(struct in *in, struct hk_incidents *all)
{
  struct hk_string groups[HK_FLEET_GROUPS_MOST];
  struct hk_fleet_sensor *s;
  const uint32_t known = all->names.n_sensors;
  const struct hk_string name = get_name(in);
  const uint32_t n = get_number(in, HK_FLEET_GROUPS_MOST + 1);
  for (uint32_t i = 0; i < n && !in->bad; i++)
    groups[i] = get_name(in);
  const int64_t until = get_time(in);
  const double R = get_real(in, -1, HK_SEVERITY_MOST + HK_INCIDENT_BONUS);
  if (in->bad)
    return -EBADMSG;
  const int status = hk_fleet_learn(&all->names, name, groups, n, &s);
  if (status != 0)
    return status == -EINVAL ? -EBADMSG : status;
  if (all->names.n_sensors == known) /* twice the same */
    return -EBADMSG;
  s->told_until = until;
  s->told_R = R;
  return 0;
}

static void get_member(struct in *in, struct hk_incidents *all, struct hk_incident *i)
{
  const uint32_t number = get_number(in, all->names.n_sensors);
  struct hk_fleet_sensor *m = in->bad ? NULL : all->names.sensors[number];
  if (!m || m->incident) {
    in->bad = true;
    return;
  }
  m->S = get_real(in, HK_TAIL_WEAKEST, HK_SEVERITY_MOST);
  m->raised = get_time(in);
  m->instant = get_time(in);
  m->channels = get_u32(in);
  m->strongest = (uint8_t)get_number(in, HK_INCIDENT_CHANNELS);
  const struct hk_string what = in->mute ? hk_string("") : get_name(in);
  in->bad |= what.length > HK_INCIDENT_SAID || (what.length > 0 && memchr(what.data, 0, what.length));
  m->what = what.length > 0 && !in->bad ? strndup(what.data, what.length) : NULL;
  hk_incident_add(i, m);
  all->counts.members++;
}

static int get_incident(struct in *in, struct hk_incidents *all)
{
  struct hk_incident *i = hk_ends_reserve(&all->ends) ? calloc(1, sizeof *i) : NULL;
  if (!i)
    return -ENOMEM;
  i->end = &i->members;
  i->id = get_u64(in);
  in->bad |= i->id == 0 || i->id > all->last_id;
  i->open = get_time(in);
  i->last = get_time(in);
  i->heard = in->deaf ? i->last : get_time(in);
  i->own = in->deaf ? i->last : get_time(in);
  in->bad |= i->heard < i->last;
  hk_incident_link(all, i);
  i->told_at = get_time(in);
  i->R = get_real(in, 0, HK_SEVERITY_MOST + HK_INCIDENT_BONUS);
  i->S = get_real(in, 0, HK_SEVERITY_MOST);
  i->company = get_real(in, 0, HUGE_REAL);
  i->counted = get_real(in, -1, HK_SEVERITY_MOST + HK_INCIDENT_BONUS);
  i->weight = get_real(in, 0, HUGE_REAL);
  i->told_R = get_real(in, 0, HK_SEVERITY_MOST + HK_INCIDENT_BONUS);
  const uint32_t node = get_u32(in), flags = get_u32(in);
  if (node != NOTHING && node >= all->names.n_nodes)
    return -EBADMSG;
  i->node = node == NOTHING ? NULL : all->names.nodes[node];
  i->touched = flags & 1;
  i->told = flags & 2;
  i->told_n = get_u32(in);
  i->updates = get_u32(in);
  const uint32_t n = get_number(in, all->names.n_sensors + 1);
  for (uint32_t m = 0; m < n && !in->bad; m++)
    get_member(in, all, i);
  return in->bad || n == 0 ? -EBADMSG : 0;
}

/* The child of a node that a number tells; NULL: it is none of its children. */
static struct hk_fleet_child *child_of(const struct hk_incidents *all, const struct hk_fleet_node *n, uint32_t number)
{
  if (!n->group)
    return number < all->names.n_nodes && all->names.nodes[number]->self.above == n ? &all->names.nodes[number]->self : NULL;
  struct hk_fleet_sensor *s = number < all->names.n_sensors ? all->names.sensors[number] : NULL;
  for (uint32_t i = 0; s && i < s->n_groups; i++)
    if (s->groups[i].above == n)
      return &s->groups[i];
  return NULL;
}

static int get_node(struct in *in, struct hk_incidents *all)
{
  const uint32_t number = get_number(in, all->names.n_nodes), sick = get_u32(in);
  if (in->bad || (sick != NOTHING && sick >= all->names.n_sensors))
    return -EBADMSG;
  struct hk_fleet_node *n = all->names.nodes[number];
  n->sick = sick == NOTHING ? NULL : all->names.sensors[sick];
  n->newcomer = get_time(in);
  const uint32_t active = get_u32(in);
  for (uint32_t i = 0; i < active; i++) {
    struct hk_fleet_child *c = child_of(all, n, get_u32(in));
    const uint32_t sensor = get_number(in, all->names.n_sensors);
    if (in->bad || !c || c->active)
      return -EBADMSG;
    c->sensor = all->names.sensors[sensor];
    c->S = get_real(in, HK_TAIL_WEAKEST, HK_SEVERITY_MOST);
    c->raised = get_time(in);
    if (in->bad)
      return -EBADMSG;
    const int status = hk_company_restore(c);
    if (status != 0)
      return status;
  }
  return 0;
}

int64_t hk_incidents_image_interval(const char *image, size_t size)
{
  struct head head;
  if (size < sizeof head)
    return 0;
  memcpy(&head, image, sizeof head);
  return head.interval;
}

int hk_incidents_read(struct hk_incidents *all, const char *image, size_t size)
{
  struct head head;
  if (size < sizeof head)
    return -EBADMSG;
  memcpy(&head, image, sizeof head);
  const bool mute = head.magic == MAGIC_MUTE, deaf = mute || head.magic == MAGIC_DEAF;
  struct in in = { image + sizeof head, size - sizeof head, false, deaf, mute };
  if ((head.magic != MAGIC && !deaf) || head.size != in.left || head.interval != all->rules.interval ||
      head.checksum != XXH3_64bits_withSeed(in.at, in.left, in.left))
    return -EBADMSG;
  get_state(&in, all);
  static int (*const parts[])(struct in * in, struct hk_incidents * all) = { get_sensor, get_incident, get_node };
  for (uint32_t part = 0; part < sizeof parts / sizeof *parts; part++) {
    const uint32_t n = get_u32(&in);
    for (uint32_t i = 0; i < n; i++) {
      const int status = in.bad ? -EBADMSG : parts[part](&in, all);
      if (status != 0)
        return status;
    }
  }
  return in.bad || in.left > 0 ? -EBADMSG : 0;
}
