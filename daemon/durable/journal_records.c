#include "daemon/durable/journal_records.h"

#include "daemon/base/limits.h"
#include "daemon/config/config.h"

#include <errno.h>
#include <string.h>

struct points_head {
  uint32_t n, n_marks;
};

struct sensor_head {
  uint64_t order;
  uint32_t slot;
  uint8_t generation;
  uint8_t detector; /* length of each, bytes */
  uint16_t name;
};

struct feed_head {
  uint32_t number, name;
};

/* After the name; missing in records from before there were owners. */
struct feed_tail {
  uint64_t owner;
  int64_t used;
};

_Static_assert(sizeof(struct points_head) + HK_CHUNK_MARKS * sizeof(struct hk_record_mark) + HK_CHUNK_POINTS * 20 <=
                   HK_RECORD_MAX,
               "a chunk fits into a record");
_Static_assert(HK_NAME_MAX <= UINT16_MAX && HK_CONFIG_NAME_MAX <= UINT8_MAX, "lengths fit");

static uint8_t *journal_records_put(uint8_t *at, const void *data, size_t size)
{
  memcpy(at, data, size);
  return at + size;
}

int hk_record_points(struct hk_journal *j, const struct hk_record_points *p, uint64_t *position)
{
  const struct points_head head = { p->n, p->n_marks };
  const size_t n = p->n;
  uint8_t *at = hk_journal_begin(j, HK_RECORD_POINTS, sizeof head + p->n_marks * sizeof *p->marks + 20 * n);
  if (!at)
    return -ENOMEM;
  at = journal_records_put(at, &head, sizeof head);
  at = journal_records_put(at, p->marks, p->n_marks * sizeof *p->marks);
  at = journal_records_put(at, p->time, n * sizeof *p->time);
  at = journal_records_put(at, p->value, n * sizeof *p->value);
  (void)journal_records_put(at, p->slot, n * sizeof *p->slot);
  *position = hk_journal_end(j, p->n);
  return 0;
}

int hk_record_sensor(struct hk_journal *j, uint32_t type, const struct hk_record_sensor *s)
{
  const struct sensor_head head = { s->order, s->slot, s->generation, (uint8_t)s->detector.length, (uint16_t)s->name.length };
  const size_t owner = s->owner != 0 ? sizeof s->owner : 0;
  uint8_t *at = hk_journal_begin(j, type, sizeof head + head.name + head.detector + owner);
  if (!at)
    return -ENOMEM;
  at = journal_records_put(at, &head, sizeof head);
  at = journal_records_put(at, s->name.data, head.name);
  at = journal_records_put(at, s->detector.data, head.detector);
  (void)journal_records_put(at, &s->owner, owner);
  (void)hk_journal_end(j, 0);
  return 0;
}

int hk_record_feed(struct hk_journal *j, const struct hk_record_feed *f)
{
  const struct feed_head head = { f->number, (uint32_t)f->name.length };
  const struct feed_tail tail = { f->owner, f->used };
  uint8_t *at = hk_journal_begin(j, HK_RECORD_FEED, sizeof head + f->name.length + sizeof tail);
  if (!at)
    return -ENOMEM;
  at = journal_records_put(journal_records_put(at, &head, sizeof head), f->name.data, f->name.length);
  (void)journal_records_put(at, &tail, sizeof tail);
  (void)hk_journal_end(j, 0);
  return 0;
}

int hk_record_feed_gone(struct hk_journal *j, uint32_t number)
{
  const struct feed_head head = { number, 0 };
  uint8_t *at = hk_journal_begin(j, HK_RECORD_FEED_GONE, sizeof head);
  if (!at)
    return -ENOMEM;
  (void)journal_records_put(at, &head, sizeof head);
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
  const size_t size = sizeof head + head.name + head.detector;
  uint64_t owner = 0;
  if (r->count != 0 || (r->size != size && r->size != size + sizeof owner))
    return -EBADMSG;
  if (r->size > size)
    memcpy(&owner, r->payload + size, sizeof owner);
  *out =
      (struct hk_record_sensor){ head.order, head.slot, head.generation, { name, head.name }, { name + head.name, head.detector },
                                 owner };
  return 0;
}

int hk_record_feed_read(const struct hk_record *r, struct hk_record_feed *out)
{
  struct feed_head head;
  struct feed_tail tail = { 0 };
  if (r->size < sizeof head)
    return -EBADMSG;
  memcpy(&head, r->payload, sizeof head);
  const uint64_t size = sizeof head + (uint64_t)head.name;
  if (r->count != 0 || (r->size != size && r->size != size + sizeof tail))
    return -EBADMSG;
  if (r->size > size)
    memcpy(&tail, r->payload + size, sizeof tail);
  *out = (struct hk_record_feed){ head.number, { (const char *)r->payload + sizeof head, head.name }, tail.owner, tail.used };
  return 0;
}

int hk_record_feed_gone_read(const struct hk_record *r, uint32_t *number)
{
  struct feed_head head;
  if (r->count != 0 || r->size != sizeof head)
    return -EBADMSG;
  memcpy(&head, r->payload, sizeof head);
  *number = head.number;
  return 0;
}
