#include "daemon/durable/records.h"

#include "daemon/config.h"
#include "daemon/durable/feeds.h"

#include <errno.h>
#include <string.h>

struct points_head {
  uint32_t n, n_marks;
};

struct sensor_head {
  uint64_t order;
  uint32_t slot;
  uint8_t generation;
  uint8_t detector; /* bytes of each */
  uint16_t name;
};

struct feed_head {
  uint32_t number, name;
};

_Static_assert(sizeof(struct points_head) + HK_CHUNK_MARKS * sizeof(struct hk_record_mark) + HK_CHUNK_POINTS * 20 <=
                   HK_RECORD_MAX,
               "a chunk fits into a record");
_Static_assert(HK_NAME_MAX <= UINT16_MAX && HK_CONFIG_NAME_MAX <= UINT8_MAX, "lengths fit");

static uint8_t *put(uint8_t *at, const void *data, size_t size)
{
  memcpy(at, data, size);
  return at + size;
}

int hk_record_chunk(struct hk_journal *j, const struct hk_chunk *c, uint64_t *position)
{
  const struct points_head head = { c->n, c->n_marks };
  const size_t n = c->n;
  uint8_t *at = hk_journal_begin(j, HK_RECORD_POINTS, sizeof head + c->n_marks * sizeof(struct hk_record_mark) + 20 * n);
  if (!at)
    return -ENOMEM;
  at = put(at, &head, sizeof head);
  for (uint32_t i = 0; i < c->n_marks; i++) {
    const struct hk_record_mark mark = { hk_feed_number(c->marks[i].feed), 0, c->marks[i].upto };
    at = put(at, &mark, sizeof mark);
  }
  at = put(at, c->time, n * sizeof *c->time);
  at = put(at, c->value, n * sizeof *c->value);
  (void)put(at, c->slot, n * sizeof *c->slot);
  *position = hk_journal_end(j, c->n);
  return 0;
}

int hk_record_sensor(struct hk_journal *j, uint32_t type, const struct hk_record_sensor *s)
{
  const struct sensor_head head = { s->order, s->slot, s->generation, (uint8_t)s->detector.length, (uint16_t)s->name.length };
  uint8_t *at = hk_journal_begin(j, type, sizeof head + head.name + head.detector);
  if (!at)
    return -ENOMEM;
  at = put(at, &head, sizeof head);
  at = put(at, s->name.data, head.name);
  (void)put(at, s->detector.data, head.detector);
  (void)hk_journal_end(j, 0);
  return 0;
}

int hk_record_feed(struct hk_journal *j, const struct hk_record_feed *f)
{
  const struct feed_head head = { f->number, (uint32_t)f->name.length };
  uint8_t *at = hk_journal_begin(j, HK_RECORD_FEED, sizeof head + f->name.length);
  if (!at)
    return -ENOMEM;
  (void)put(put(at, &head, sizeof head), f->name.data, f->name.length);
  (void)hk_journal_end(j, 0);
  return 0;
}

int hk_record_points_read(const struct hk_record *r, struct hk_record_points *out)
{
  struct points_head head;
  if (r->size < sizeof head)
    return -EBADMSG;
  memcpy(&head, r->payload, sizeof head);
  if (head.n != r->count || head.n > HK_CHUNK_POINTS || head.n_marks > HK_CHUNK_MARKS ||
      r->size != sizeof head + head.n_marks * sizeof *out->marks + 20 * (size_t)head.n)
    return -EBADMSG;
  const void *marks = r->payload + sizeof head, *time = (const struct hk_record_mark *)marks + head.n_marks;
  const void *value = (const int64_t *)time + head.n, *slot = (const double *)value + head.n;
  *out = (struct hk_record_points){ head.n, head.n_marks, marks, time, value, slot };
  return 0;
}

int hk_record_sensor_read(const struct hk_record *r, struct hk_record_sensor *out)
{
  struct sensor_head head;
  if (r->size < sizeof head)
    return -EBADMSG;
  memcpy(&head, r->payload, sizeof head);
  const char *name = (const char *)r->payload + sizeof head;
  if (r->count != 0 || r->size != sizeof head + head.name + head.detector)
    return -EBADMSG;
  *out = (struct hk_record_sensor){
    head.order, head.slot, head.generation, { name, head.name }, { name + head.name, head.detector }
  };
  return 0;
}

int hk_record_feed_read(const struct hk_record *r, struct hk_record_feed *out)
{
  struct feed_head head;
  if (r->size < sizeof head)
    return -EBADMSG;
  memcpy(&head, r->payload, sizeof head);
  if (r->count != 0 || r->size != sizeof head + head.name)
    return -EBADMSG;
  *out = (struct hk_record_feed){ head.number, { (const char *)r->payload + sizeof head, head.name } };
  return 0;
}
