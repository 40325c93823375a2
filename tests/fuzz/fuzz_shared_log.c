/* Fuzz target: messages of the log of events that the machines of a cluster share. Each gets a valid head and checksum, so that
 * the code after them is reached; then the unchanged bytes are a message, too. Every message has a position, whatever is in it,
 * and known holders have printable names. */
#include "daemon/durable/event_copy.h"
#include "daemon/durable/event_shared.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

static void take(struct hk_eventlog *log, uint64_t offset, const void *message, size_t size)
{
  const char *why = NULL;
  if (!hk_copy_take(log, offset, message, size, &why))
    require(why && *why);
  require(hk_shared_last(hk_eventlog_shared(log)) == offset + 1 && hk_eventlog_last(log) == offset + 1);
}

static void look_at_holders(struct hk_holders *holders)
{
  struct hk_holder holder;
  for (uint32_t i = 0; i < HK_PARTITIONS_MAX; i++) {
    const enum hk_holders_wish wish = hk_holders_wish(holders, i, 0);
    require(wish == HK_WISH_NONE || wish == HK_WISH_OURS || wish == HK_WISH_OTHERS);
    if (!hk_holders_find(holders, i, &holder))
      continue;
    const size_t length = strlen(holder.machine);
    require(holder.epoch > 0 && length > 0 && length <= HK_MACHINE_MAX);
    for (size_t k = 0; k < length; k++)
      require(holder.machine[k] > ' ' && holder.machine[k] <= '~');
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const uint32_t types[] = { 1, 2, 3, 4, HK_SHARED_PLACE, HK_SHARED_MARK, HK_SHARED_HOLDS, HK_SHARED_WISH };
  struct hk_eventlog *log;
  struct hk_place place;
  uint64_t offset = 0, numbers = 0;
  if (hk_copy_open(&log, 1 << 20) != 0)
    abort();
  struct hk_event_shared *shared = hk_eventlog_shared(log);
  take(log, offset++, data, size);
  hk_shared_ready(shared);
  while (size > 2) { /* 2 bytes say of what type the payload is, and how long */
    const size_t wanted = data[0] | (data[1] & 15u) << 8, length = wanted < size - 2 ? wanted : size - 2;
    struct hk_shared_message *m = hk_shared_message(types[(data[1] >> 4) % 8], length);
    require(m != NULL);
    memcpy(hk_shared_payload(m), data + 2, length);
    require(hk_shared_put(shared, m) == ++numbers);
    take(log, offset++, m->message, m->size);
    hk_shared_confirmed(shared, numbers);
    data += 2 + length;
    size -= 2 + length;
  }
  require(hk_shared_waiting(shared) == 0 && hk_shared_outgoing(shared, NULL) == NULL);
  look_at_holders(hk_shared_holders(shared));
  (void)hk_shared_place(shared, "receiver", &place);
  uint64_t positions[4];
  uint32_t acknowledged;
  require(hk_copy_standing(log, positions, 4, &acknowledged) >= acknowledged);
  hk_eventlog_free(log);
  return 0;
}
