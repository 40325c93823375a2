/* A message of the shared log is a head, and the payload of a record as on a disk (event_records.h) or of one of the two records
 * below, which only members of a cluster need. */
#include "daemon/durable/event_shared.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC 0x31454b48u   /* HKE1: the last byte is the version */
#define LATER 0x39454b48u   /* HKE9 */
#define VERSION 0xff000000u /* that byte */

struct head {
  uint64_t checksum; /* XXH3 of everything after it */
  uint32_t magic, type;
  uint64_t node; /* who writes: random, of a process */
};

struct mark {
  uint64_t number;
  uint64_t leads;
};

/* The receiver's name follows. */
struct place {
  uint64_t position, until, held, id;
};
_Static_assert(sizeof(struct head) == 24 && sizeof(struct mark) == 16 && sizeof(struct place) == 32, "no padding");

struct known_place {
  struct known_place *next;
  struct hk_place place;
  char name[];
};

struct hk_event_shared {
  uint64_t node;
  int fd; /* eventfd */
  atomic_uint_fast64_t position, confirmed, marked;
  atomic_uint_fast64_t leader; /* node, by the log; 0: none yet */
  _Atomic int64_t led_at;      /* ns, monotonic; 0: another machine leads, or none */
  atomic_bool ready, wants;
  pthread_mutex_t lock; /* protects the following */
  uint64_t marks;
  struct hk_shared_message *first, **last;
  atomic_uint_fast64_t appended;
  struct known_place *places;
  struct hk_holders *holders; /* has a lock of its own */
};

int hk_shared_open(struct hk_event_shared **out)
{
  struct hk_event_shared *c = calloc(1, sizeof *c);
  if (!c)
    return -ENOMEM;
  *out = c;
  pthread_mutex_init(&c->lock, NULL);
  c->last = &c->first;
  c->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (c->fd < 0)
    return -errno;
  const int status = hk_holders_new(&c->holders);
  if (status != 0)
    return status;
  return getrandom(&c->node, sizeof c->node, 0) == (ssize_t)sizeof c->node ? 0 : -EIO;
}

void hk_shared_free(struct hk_event_shared *c)
{
  if (!c)
    return;
  for (struct hk_shared_message *m = c->first, *next; m; m = next) {
    next = m->next;
    free(m);
  }
  for (struct known_place *p = c->places, *next; p; p = next) {
    next = p->next;
    free(p);
  }
  hk_holders_free(c->holders);
  if (c->fd >= 0)
    close(c->fd);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

/* --- to the shared log ------------------------------------------------------------------------------------------------------ */

struct hk_shared_message *hk_shared_message(uint32_t type, size_t payload)
{
  struct hk_shared_message *m = malloc(sizeof *m + sizeof(struct head) + payload);
  if (!m)
    return NULL;
  const struct head head = { .magic = MAGIC, .type = type };
  *m = (struct hk_shared_message){ .size = sizeof head + payload };
  memcpy(m->message, &head, sizeof head);
  return m;
}

uint8_t *hk_shared_payload(struct hk_shared_message *m)
{
  return m->message + sizeof(struct head);
}

void hk_shared_about(struct hk_shared_message *m, const char *what, size_t length)
{
  m->about = XXH3_64bits(what, length) | 1;
}

static void event_shared_seal(const struct hk_event_shared *c, struct hk_shared_message *m)
{
  const size_t summed = offsetof(struct head, magic);
  memcpy(m->message + offsetof(struct head, node), &c->node, sizeof c->node);
  const uint64_t checksum = XXH3_64bits(m->message + summed, m->size - summed);
  memcpy(m->message, &checksum, sizeof checksum);
}

/* Under the lock; then event_shared_wake. */
static uint64_t event_shared_link(struct hk_event_shared *c, struct hk_shared_message *m)
{
  m->number = c->appended + 1;
  *c->last = m;
  c->last = &m->next;
  c->appended = m->number;
  return m->number;
}

static void event_shared_wake(const struct hk_event_shared *c)
{
  const uint64_t one = 1;
  const ssize_t n = write(c->fd, &one, sizeof one); /* if it is full it is readable */
  (void)n;
}

uint64_t hk_shared_put(struct hk_event_shared *c, struct hk_shared_message *m)
{
  if (!m)
    return 0;
  event_shared_seal(c, m);
  pthread_mutex_lock(&c->lock);
  const uint64_t number = event_shared_link(c, m);
  pthread_mutex_unlock(&c->lock);
  event_shared_wake(c);
  return number;
}

const struct hk_shared_message *hk_shared_outgoing(struct hk_event_shared *c, const struct hk_shared_message *after)
{
  pthread_mutex_lock(&c->lock);
  const struct hk_shared_message *m = after ? after->next : c->first;
  pthread_mutex_unlock(&c->lock);
  return m;
}

int hk_shared_fd(const struct hk_event_shared *c)
{
  return c->fd;
}

void hk_shared_woken(struct hk_event_shared *c)
{
  uint64_t times;
  const ssize_t n = read(c->fd, &times, sizeof times);
  (void)n;
}

void hk_shared_confirmed(struct hk_event_shared *c, uint64_t number)
{
  struct hk_shared_message *done = NULL;
  pthread_mutex_lock(&c->lock);
  while (c->first && c->first->number <= number) {
    struct hk_shared_message *m = c->first;
    c->first = m->next;
    m->next = done;
    done = m;
  }
  if (!c->first)
    c->last = &c->first;
  if (number > c->confirmed)
    c->confirmed = number;
  pthread_mutex_unlock(&c->lock);
  for (struct hk_shared_message *next; done; done = next) {
    next = done->next;
    free(done);
  }
}

uint64_t hk_shared_waiting(const struct hk_event_shared *c)
{
  const uint64_t confirmed = c->confirmed; /* first, since it follows the other */
  return c->appended - confirmed;
}

/* --- from the shared log ---------------------------------------------------------------------------------------------------- */

static void event_shared_take_place(struct hk_event_shared *c, const uint8_t *payload, size_t size)
{
  struct place place;
  const size_t length = size - sizeof place;
  if (size <= sizeof place || memchr(payload + sizeof place, 0, length))
    return;
  memcpy(&place, payload, sizeof place);
  pthread_mutex_lock(&c->lock);
  struct known_place *p = c->places;
  while (p && (strlen(p->name) != length || memcmp(p->name, payload + sizeof place, length) != 0))
    p = p->next;
  if (!p && (p = calloc(1, sizeof *p + length + 1))) {
    memcpy(p->name, payload + sizeof place, length);
    p->next = c->places;
    c->places = p;
  }
  if (p)
    p->place = (struct hk_place){ .position = place.position, .until = place.until, .held = place.held, .id = place.id };
  pthread_mutex_unlock(&c->lock);
}

static void take_mark(struct hk_event_shared *c, uint64_t node, const uint8_t *payload, size_t size)
{
  struct mark mark;
  if (size != sizeof mark)
    return;
  memcpy(&mark, payload, sizeof mark);
  if (mark.leads)
    c->leader = node;
  if (node == c->node && mark.number > c->marked)
    c->marked = mark.number;
}

bool hk_shared_read(struct hk_event_shared *c, const void *message, size_t size, struct hk_shared_record *out, const char **why)
{
  const uint8_t *bytes = message;
  const size_t summed = offsetof(struct head, magic);
  struct head head;
  *why = "it is too short";
  if (size < sizeof head)
    return false;
  memcpy(&head, bytes, sizeof head);
  const bool later = ((head.magic ^ MAGIC) & ~VERSION) == 0 && head.magic > MAGIC && head.magic <= LATER;
  *why = later                 ? "it is of a later version; this hankeld reads version 1: upgrade this machine"
         : head.magic != MAGIC ? "it is none of ours"
         : XXH3_64bits(bytes + summed, size - summed) != head.checksum ? "its checksum is wrong"
                                                                       : NULL;
  *out = (struct hk_shared_record){ head.type, head.node == c->leader, bytes + sizeof head, size - sizeof head };
  if (!*why && head.type == HK_SHARED_PLACE && out->leads)
    event_shared_take_place(c, out->payload, out->size);
  if (!*why && head.type == HK_SHARED_MARK)
    take_mark(c, head.node, out->payload, out->size);
  if (!*why && head.type == HK_SHARED_HOLDS)
    hk_holders_take(c->holders, head.node, out->payload, out->size);
  if (!*why && head.type == HK_SHARED_WISH && c->ready) /* those of before the start are old */
    hk_holders_take_wish(c->holders, head.node, head.node == c->node, hk_now(), out->payload, out->size);
  return !*why;
}

void hk_shared_reach(struct hk_event_shared *c, uint64_t position)
{
  c->position = position;
}

uint64_t hk_shared_appended(const struct hk_event_shared *c)
{
  return c->appended;
}

bool hk_shared_safe(const struct hk_event_shared *c, uint64_t appended)
{
  return c->confirmed >= appended;
}

uint64_t hk_shared_mark(struct hk_event_shared *c, bool leads)
{
  struct hk_shared_message *m = hk_shared_message(HK_SHARED_MARK, sizeof(struct mark));
  if (!m)
    return 0;
  pthread_mutex_lock(&c->lock); /* marks of several threads are in the log in the order of their numbers */
  const struct mark mark = { ++c->marks, leads };
  memcpy(hk_shared_payload(m), &mark, sizeof mark);
  event_shared_seal(c, m);
  (void)event_shared_link(c, m);
  pthread_mutex_unlock(&c->lock);
  event_shared_wake(c);
  return mark.number;
}

uint64_t hk_shared_marked(const struct hk_event_shared *c)
{
  return c->marked;
}

void hk_shared_ready(struct hk_event_shared *c)
{
  c->ready = true;
}

bool hk_shared_is_ready(const struct hk_event_shared *c)
{
  return c->ready;
}

uint64_t hk_shared_last(const struct hk_event_shared *c)
{
  return c->position;
}

uint64_t hk_shared_shown(const struct hk_event_shared *c)
{
  return c->ready ? c->position : 0;
}

/* --- the leader ------------------------------------------------------------------------------------------------------------- */

void hk_shared_want(struct hk_event_shared *c, bool wants)
{
  c->wants = wants;
}

bool hk_shared_wants(const struct hk_event_shared *c)
{
  return c->wants;
}

void hk_shared_lead(struct hk_event_shared *c, bool leads)
{
  c->led_at = leads ? hk_now() : 0;
}

bool hk_shared_leads(const struct hk_event_shared *c)
{
  const int64_t at = c->led_at;
  return at != 0 && hk_now() - at < HK_SHARED_LEADS && c->leader == c->node;
}

bool hk_shared_place(struct hk_event_shared *c, const char *name, struct hk_place *out)
{
  pthread_mutex_lock(&c->lock);
  const struct known_place *p = c->places;
  while (p && strcmp(p->name, name) != 0)
    p = p->next;
  if (p)
    *out = p->place;
  pthread_mutex_unlock(&c->lock);
  return p != NULL;
}

uint64_t hk_shared_append_place(struct hk_event_shared *c, const char *name, const struct hk_place *p)
{
  const struct place place = { p->position, p->until, p->held, p->id };
  struct hk_shared_message *m = hk_shared_message(HK_SHARED_PLACE, sizeof place + strlen(name));
  if (m) {
    memcpy(hk_shared_payload(m), &place, sizeof place);
    memcpy(hk_shared_payload(m) + sizeof place, name, strlen(name));
  }
  return hk_shared_put(c, m);
}

struct hk_holders *hk_shared_holders(struct hk_event_shared *c)
{
  return c->holders;
}

uint64_t hk_shared_append_holder(struct hk_event_shared *c, uint32_t partition, uint64_t epoch, const char *machine)
{
  struct hk_shared_message *m = hk_shared_message(machine ? HK_SHARED_HOLDS : HK_SHARED_WISH, hk_holders_size(machine));
  if (m) {
    hk_holders_write(hk_shared_payload(m), partition, epoch, machine);
    hk_shared_about(m, (const char *)&partition, sizeof partition);
  }
  return hk_shared_put(c, m);
}
