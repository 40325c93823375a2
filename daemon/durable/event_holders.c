#include "daemon/durable/event_holders.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Of both records; the machine's name follows. */
struct holding {
  uint32_t partition, zero;
  uint64_t epoch; /* of a wish 0, HK_HOLDERS_AGAIN or HK_HOLDERS_WITHDRAWN */
};
_Static_assert(sizeof(struct holding) == 16, "no padding");

struct entry {
  uint64_t epoch; /* 0: no holder is known */
  char *machine;
  int64_t wished; /* ns; 0: it is nobody's wish */
  uint64_t by;    /* the process whose wish it is, or was last; 0: none, */
  bool ours;      /* and whether that is this one */
};

struct hk_holders {
  pthread_mutex_t lock;
  struct entry entry[HK_PARTITIONS_MAX];
};

int hk_holders_new(struct hk_holders **out)
{
  *out = calloc(1, sizeof **out);
  if (!*out)
    return -ENOMEM;
  pthread_mutex_init(&(*out)->lock, NULL);
  return 0;
}

void hk_holders_free(struct hk_holders *h)
{
  if (!h)
    return;
  for (uint32_t i = 0; i < HK_PARTITIONS_MAX; i++)
    free(h->entry[i].machine);
  pthread_mutex_destroy(&h->lock);
  free(h);
}

size_t hk_holders_size(const char *machine)
{
  return sizeof(struct holding) + (machine ? strlen(machine) : 0);
}

void hk_holders_write(uint8_t *to, uint32_t partition, uint64_t epoch, const char *machine)
{
  const struct holding holding = { .partition = partition, .epoch = epoch };
  memcpy(to, &holding, sizeof holding);
  if (machine)
    memcpy(to + sizeof holding, machine, strlen(machine));
}

static bool holders_read(const uint8_t *payload, size_t size, struct holding *out)
{
  if (size < sizeof *out)
    return false;
  memcpy(out, payload, sizeof *out);
  return out->partition < HK_PARTITIONS_MAX && out->zero == 0;
}

/* A machine's name is shown to people: printable characters of ASCII, as host names and ports have. */
static bool holders_name_valid(const uint8_t *name, size_t length)
{
  for (size_t i = 0; i < length; i++)
    if (name[i] <= ' ' || name[i] > '~' || name[i] == '"' || name[i] == '\\')
      return false;
  return length > 0 && length <= HK_MACHINE_MAX;
}

void hk_holders_take(struct hk_holders *h, uint64_t by, const uint8_t *payload, size_t size)
{
  struct holding holding;
  if (!holders_read(payload, size, &holding) || holding.epoch == 0 ||
      !holders_name_valid(payload + sizeof holding, size - sizeof holding))
    return;
  struct entry *e = &h->entry[holding.partition];
  pthread_mutex_lock(&h->lock);
  if (holding.epoch >= e->epoch) {
    char *machine = strndup((const char *)payload + sizeof holding, size - sizeof holding);
    free(e->machine);
    if (by == e->by)
      e->wished = 0; /* fulfilled. That of another one says when it took it: perhaps before the wish, and came later */
    e->machine = machine;
    e->epoch = machine ? holding.epoch : 0;
  }
  pthread_mutex_unlock(&h->lock);
}

void hk_holders_take_wish(struct hk_holders *h, uint64_t by, bool ours, int64_t now, const uint8_t *payload, size_t size)
{
  struct holding holding;
  if (!holders_read(payload, size, &holding) || size != sizeof holding || holding.epoch > HK_HOLDERS_WITHDRAWN)
    return;
  struct entry *e = &h->entry[holding.partition];
  pthread_mutex_lock(&h->lock);
  if (holding.epoch == HK_HOLDERS_WITHDRAWN) {
    if (e->by == by)
      e->wished = 0;
  } else if (holding.epoch != HK_HOLDERS_AGAIN || e->by == 0 || e->by == by) { /* else another one wished for it since */
    e->wished = now;
    e->by = by;
    e->ours = ours;
  }
  pthread_mutex_unlock(&h->lock);
}

bool hk_holders_find(struct hk_holders *h, uint32_t partition, struct hk_holder *out)
{
  pthread_mutex_lock(&h->lock);
  const struct entry *e = partition < HK_PARTITIONS_MAX ? &h->entry[partition] : NULL;
  const bool found = e && e->epoch > 0;
  if (found) {
    out->epoch = e->epoch;
    memcpy(out->machine, e->machine, strlen(e->machine) + 1);
  }
  pthread_mutex_unlock(&h->lock);
  return found;
}

uint32_t hk_holders_count(struct hk_holders *h)
{
  uint32_t n = 0;
  pthread_mutex_lock(&h->lock);
  for (uint32_t i = 0; i < HK_PARTITIONS_MAX; i++) {
    bool fresh = h->entry[i].epoch > 0;
    for (uint32_t j = 0; j < i && fresh; j++)
      fresh = h->entry[j].epoch == 0 || strcmp(h->entry[j].machine, h->entry[i].machine) != 0;
    n += fresh;
  }
  pthread_mutex_unlock(&h->lock);
  return n;
}

enum hk_holders_wish hk_holders_wish(struct hk_holders *h, uint32_t partition, int64_t now)
{
  pthread_mutex_lock(&h->lock);
  const struct entry *e = &h->entry[partition];
  const bool wished = e->wished != 0 && now - e->wished < HK_HOLDERS_WISH, ours = e->ours;
  pthread_mutex_unlock(&h->lock);
  return !wished ? HK_WISH_NONE : ours ? HK_WISH_OURS : HK_WISH_OTHERS;
}
