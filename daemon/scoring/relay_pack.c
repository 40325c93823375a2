/* Points are sorted by partition (a counting sort, which keeps their order), then cut into messages: a REGISTER frame with the
 * names of the sensors, and a POINTS frame whose handles are indices of these names.
 * The partition of a sensor is determined once, and stored by slot for as long as the slot has that handle. Sensors of a
 * group's machine, or of a field, have the partition of the machine's name, so that they are on one machine of the cluster. */
#include "daemon/scoring/relay_pack.h"

#include "daemon/intake/chunk.h"
#include "daemon/scoring/partition_of.h"
#include "proto/wire/columns.h"
#include "proto/wire/log_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POINTS HK_LOG_POINTS_MAX
#define NAMES (256u << 10) /* bytes of names in a message */
#define ROOM (64u << 10)   /* minimum room of a message: two heads, and a name */
_Static_assert(NAMES + 20 * POINTS + ROOM <= HK_FRAME_MAX, "a frame of it can be read by whoever takes frames of usual length");

/* The partition of a slot. */
struct place {
  uint32_t handle; /* the sensor whose partition this is; HK_NO_HANDLE: not determined */
  uint32_t partition;
  uint64_t message; /* the last message that it was put into, and */
  uint32_t number;  /* the index of its name in that message */
};

struct hk_packer {
  struct hk_registry *registry;
  struct hk_sections *sections;
  uint32_t partitions;
  struct place *place; /* by slot */
  uint64_t message;    /* number of the message */
  uint32_t *first;     /* partitions + 1: where the points of each begin in `order` */
  uint32_t *order;     /* number of a point within its chunk, | chunk << 16 */
  uint32_t most;       /* points in `order` */
  uint32_t n_names, n; /* of the current message */
  size_t size;         /* bytes of the names */
  struct hk_string name[POINTS];
  uint32_t handle[POINTS];
  int64_t time[POINTS];
  double value[POINTS];
};
_Static_assert(HK_CHUNK_POINTS <= 1u << 16, "a point's number within its chunk has 16 bits");

void hk_packed_free(struct hk_packed *p)
{
  free(p->bytes);
  free(p->message);
  *p = (struct hk_packed){ 0 };
}

int hk_packer_new(struct hk_packer **out, const struct hk_config *config, struct hk_registry *registry, uint32_t points)
{
  struct hk_packer *p = calloc(1, sizeof *p);
  if (!p)
    return -ENOMEM;
  p->registry = registry;
  p->partitions = config->cluster.partitions;
  p->most = points;
  p->place = malloc(config->max_sensors * sizeof *p->place);
  p->first = calloc(p->partitions + 1, sizeof *p->first);
  p->order = malloc(points * sizeof *p->order);
  if (!p->place || !p->first || !p->order || hk_sections_new(&p->sections, config) != 0) {
    hk_packer_free(p);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < config->max_sensors; i++)
    p->place[i] = (struct place){ .handle = HK_NO_HANDLE };
  *out = p;
  return 0;
}

void hk_packer_free(struct hk_packer *p)
{
  if (!p)
    return;
  hk_sections_release(p->sections);
  free(p->place);
  free(p->first);
  free(p->order);
  free(p);
}

int hk_packer_adopt(struct hk_packer *p, const struct hk_config *config)
{
  struct hk_sections *sections;
  if (hk_sections_new(&sections, config) != 0)
    return -ENOMEM;
  hk_sections_release(p->sections);
  p->sections = sections;
  for (uint32_t i = 0; i < hk_registry_slots(p->registry); i++)
    p->place[i].handle = HK_NO_HANDLE;
  return 0;
}

static const struct place *relay_pack_place_of(struct hk_packer *p, uint32_t slot)
{
  struct place *place = &p->place[slot];
  const uint32_t handle = hk_registry_handle(p->registry, slot);
  if (place->handle != handle || handle == HK_NO_HANDLE) { /* points of a sensor that is being forgotten may still come */
    place->partition = hk_partition_of(p->sections, hk_registry_name(p->registry, slot), p->partitions);
    place->message = 0;
    place->handle = handle;
  }
  return place;
}

/* Sorts points by partition, keeping their order. */
static void relay_pack_sort(struct hk_packer *p, struct hk_chunk *const *chunks, uint32_t n)
{
  memset(p->first, 0, (p->partitions + 1) * sizeof *p->first);
  for (uint32_t c = 0; c < n; c++)
    for (uint32_t i = 0; i < chunks[c]->n; i++)
      p->first[relay_pack_place_of(p, chunks[c]->slot[i])->partition + 1]++;
  for (uint32_t k = 0; k < p->partitions; k++)
    p->first[k + 1] += p->first[k];
  for (uint32_t c = 0; c < n; c++)
    for (uint32_t i = 0; i < chunks[c]->n; i++)
      p->order[p->first[p->place[chunks[c]->slot[i]].partition]++] = i | c << 16;
  memmove(p->first + 1, p->first, p->partitions * sizeof *p->first); /* each has moved to the beginning of the next */
  p->first[0] = 0;
}

/* Adds a point to the current message. False: it has no room. */
static bool relay_pack_add(struct hk_packer *p, const struct hk_chunk *c, uint32_t i)
{
  struct place *place = &p->place[c->slot[i]];
  if (p->n == POINTS)
    return false;
  if (place->message != p->message) {
    const struct hk_string name = hk_registry_name(p->registry, c->slot[i]);
    if (p->size + 2 + name.length > NAMES)
      return false;
    p->size += 2 + name.length;
    place->message = p->message;
    place->number = p->n_names;
    p->name[p->n_names++] = name;
  }
  p->handle[p->n] = place->number;
  p->time[p->n] = c->time[i];
  p->value[p->n++] = c->value[i];
  return true;
}

static int relay_pack_grow(struct hk_packed *out, size_t size)
{
  if (out->n == out->room) {
    struct hk_packed_message *message = realloc(out->message, 2 * (out->room + 8) * sizeof *message);
    if (!message)
      return -ENOMEM;
    out->message = message;
    out->room = 2 * (out->room + 8);
  }
  if (size > out->capacity) {
    uint8_t *bytes = realloc(out->bytes, 2 * size);
    if (!bytes)
      return -ENOMEM;
    out->bytes = bytes;
    out->capacity = 2 * size;
  }
  return 0;
}

/* Ends the current message. */
static int relay_pack_end(struct hk_packer *p, uint32_t partition, struct hk_packed *out)
{
  const size_t at = out->n > 0 ? out->message[out->n - 1].at + out->message[out->n - 1].size : 0;
  bool one = true;
  for (uint32_t i = 1; i < p->n && one; i++)
    one = p->time[i] == p->time[0];
  const struct hk_points points = { .n = p->n,
                                    .time_kind = one ? HK_TIME_ONE : HK_TIME_EACH,
                                    .value_kind = HK_VALUE_F64,
                                    .base = one ? p->time[0] : 0,
                                    .times = p->time,
                                    .values = p->value,
                                    .handles = p->handle };
  if (relay_pack_grow(out, at + p->size + 20 * (size_t)p->n + ROOM) != 0)
    return -ENOMEM;
  struct hk_writer w = HK_WRITER(out->bytes + at, out->capacity - at);
  const int status = hk_log_message_write(&w, p->n_names, p->name, &points);
  if (status == 0)
    out->message[out->n++] = (struct hk_packed_message){ partition, p->n, at, w.size };
  return status;
}

static void relay_pack_begin(struct hk_packer *p)
{
  p->message++;
  p->n = p->n_names = 0;
  p->size = 0;
}

int hk_packer_pack(struct hk_packer *p, struct hk_chunk *const *chunks, uint32_t n, struct hk_packed *out)
{
  int status = 0;
  out->n = 0;
  relay_pack_sort(p, chunks, n);
  for (uint32_t k = 0; k < p->partitions && status == 0; k++) {
    relay_pack_begin(p);
    for (uint32_t i = p->first[k]; i < p->first[k + 1] && status == 0; i++) {
      const struct hk_chunk *c = chunks[p->order[i] >> 16];
      const uint32_t point = p->order[i] & 0xffff;
      if (relay_pack_add(p, c, point))
        continue;
      status = relay_pack_end(p, k, out);
      relay_pack_begin(p);
      (void)relay_pack_add(p, c, point); /* an empty message has room */
    }
    if (status == 0 && p->n > 0)
      status = relay_pack_end(p, k, out);
  }
  return status;
}
