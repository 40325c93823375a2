/* Fuzz target: Sparkplug B. The input is a sequence of messages: a byte that selects the topic, one with the length of the
 * payload, and the payload. Whatever is in them, numbers are finite, names are not empty, and a rebirth is requested once. */
#include "daemon/bridge/sparkplug.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

static void take(void *arg, const char *metric, double value, int64_t time)
{
  (void)arg;
  require(metric[0] && isfinite(value) && time >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char *const topics[] = { "spBv1.0/g/NBIRTH/n",  "spBv1.0/g/NDATA/n",  "spBv1.0/g/DBIRTH/n/d",
                                        "spBv1.0/g/DDATA/n/d", "spBv1.0/g/NDEATH/n", "spBv1.0/g/DDEATH/n/d",
                                        "spBv1.0/g/NDATA/m",   "spBv1.0/STATE/h" };
  struct hk_sparkplug *s = hk_sparkplug_new();
  unsigned asked[8] = { 0 };
  uint8_t payload[128];
  require(s && hk_sparkplug_rebirth(1700000000000000000, payload) > 0);
  while (size >= 2) {
    const uint32_t of = data[0] & 7;
    const size_t n = data[1] < size - 2 ? data[1] : size - 2;
    struct hk_sparkplug_topic topic;
    char *copy = malloc(n > 0 ? n : 1); /* its own piece of memory, so that ASan sees one byte too many */
    bool rebirth = false;
    memcpy(copy, data + 2, n);
    if (hk_sparkplug_topic_read(topics[of], &topic))
      (void)hk_sparkplug_read(s, &topic, copy, n, 1, &rebirth, take, NULL);
    asked[of == 6] += rebirth;
    free(copy);
    data += 2 + n;
    size -= 2 + n;
  }
  require(asked[0] <= 1 && asked[1] <= 1);
  hk_sparkplug_free(s);
  return 0;
}
