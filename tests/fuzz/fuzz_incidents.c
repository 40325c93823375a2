/* Saved states of incidents, from arbitrary bytes: the first byte selects the part. Each gets a header with the right checksum,
 * because hardly any input would have one.
 *
 *   0  the incidents, 1  waiting ticks, 2  operators' verdicts
 *
 * An accepted state is written again with the same bytes, and continues with events. */
#include "daemon/incidents/feedback.h"
#include "daemon/incidents/incidents_image.h"
#include "daemon/incidents/ticks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INTERVAL INT64_C(60000000000)

/* As in incidents_image.c. */
struct head {
  uint64_t magic, size, checksum;
  int64_t interval;
};

#define check(good)                                                                                                              \
  do                                                                                                                             \
    if (!(good))                                                                                                                 \
      abort(); /* of this very line */                                                                                           \
  while (0)

static void decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                    const struct hk_incident *into, double threshold)
{
  (void)arg;
  (void)time;
  (void)threshold;
  check(incident->id != 0 && decision <= HK_INCIDENT_ABSORBED &&
        (into != NULL) == (decision == HK_INCIDENT_MERGED || decision == HK_INCIDENT_ABSORBED));
}

static struct hk_incidents *make(void)
{
  const struct hk_incidents_rules rules = { .a_day = 10, .interval = INTERVAL, .most_names = 1000, .most_members = 100 };
  struct hk_incidents *all;
  check(hk_incidents_new(&all, &rules, decided, NULL) == 0);
  return all;
}

/* An image with a head that fits. */
static char *headed(const uint8_t *data, size_t size)
{
  struct hk_incidents *none = make();
  struct hk_buffer image = { 0 };
  struct head head;
  char *out = malloc(sizeof head + size);
  hk_incidents_write(none, &image);
  check(out && !image.failed);
  memcpy(&head, image.data, sizeof head); /* for its magic */
  head.size = size;
  head.checksum = XXH3_64bits_withSeed(data, size, size);
  memcpy(out, &head, sizeof head);
  memcpy(out + sizeof head, data, size);
  hk_buffer_free(&image);
  hk_incidents_free(none);
  return out;
}

static void go_on(struct hk_incidents *all)
{
  static const char *const names[] = { "a/1", "a/2", "b/1", "b/2", "c" };
  int64_t time = hk_incidents_time(all);
  time = time < 0 ? 0 : time;
  for (uint32_t i = 0; i < 40; i++) {
    const char *name = names[i % (sizeof names / sizeof *names)];
    (void)hk_incidents_event(all, time, hk_string(name), i % 5, 1.5 + i % 7, time - INTERVAL);
    if (i % 3 == 0)
      time += INTERVAL;
    hk_incidents_reach(all, time);
    hk_incidents_expire(all, time);
  }
  hk_incidents_finish(all);
  check(hk_incidents_count(all).open == 0 && hk_incidents_count(all).members == 0);
}

static void try_incidents(const uint8_t *data, size_t size)
{
  struct hk_incidents *all = make(), *again = make();
  struct hk_buffer first = { 0 }, second = { 0 };
  char *image = headed(data, size);
  const int status = hk_incidents_read(all, image, sizeof(struct head) + size);
  check(status == 0 || status == -EBADMSG || status == -ENOMEM || status == -ENOSPC);
  free(image);
  if (status == 0) {
    hk_incidents_write(all, &first);
    check(!first.failed && hk_incidents_read(again, first.data, first.size) == 0);
    hk_incidents_write(again, &second);
    check(second.size == first.size && memcmp(second.data, first.data, first.size) == 0);
    go_on(all);
  }
  hk_buffer_free(&first);
  hk_buffer_free(&second);
  hk_incidents_free(all);
  hk_incidents_free(again);
}

static void try_ticks(const char *data, size_t size)
{
  struct hk_incidents *all = make();
  struct hk_ticks *ticks, *again;
  struct hk_buffer first = { 0 }, second = { 0 };
  check(hk_ticks_new(&ticks, all, NULL, NULL) == 0 && hk_ticks_new(&again, all, NULL, NULL) == 0);
  const int status = hk_ticks_read(ticks, data, size);
  check(status == 0 || status == -EBADMSG || status == -ENOMEM);
  if (status == 0) {
    hk_ticks_write(ticks, &first);
    check(!first.failed && first.size == size && memcmp(first.data, data, size) == 0);
    check(hk_ticks_read(again, first.data, first.size) == 0);
    hk_ticks_write(again, &second);
    check(second.size == size && memcmp(second.data, data, size) == 0);
    (void)hk_ticks_reach(ticks, hk_ticks_newest(ticks), hk_ticks_first(ticks));
    (void)hk_ticks_finish(ticks);
    check(hk_ticks_waiting(ticks) == 0);
  }
  hk_buffer_free(&first);
  hk_buffer_free(&second);
  hk_ticks_free(ticks);
  hk_ticks_free(again);
  hk_incidents_free(all);
}

static void try_feedback(const char *data, size_t size)
{
  struct hk_incidents *all = make();
  struct hk_feedback said = { 0 };
  struct hk_buffer text = { 0 };
  const size_t bytes = hk_feedback_read(&said, data, size);
  check(bytes <= size);
  if (bytes > 0) {
    hk_feedback_write(&said, &text);
    check(!text.failed && text.size == bytes && memcmp(text.data, data, bytes) == 0);
    check(hk_incidents_learn(all, hk_string("a/1"), NULL, 0) == 0);
    check(hk_incidents_event(all, INTERVAL, hk_string("a/1"), 0, 3, 0) == 0);
    hk_incidents_reach(all, 2 * INTERVAL);
    text.size = 0;
    hk_feedback_show(&said, &text);
    hk_feedback_apply(&said, all, UINT64_MAX);
    hk_feedback_show(&said, &text);
    (void)hk_feedback_of(&said, 1);
    go_on(all);
  }
  hk_buffer_free(&text);
  hk_feedback_free(&said);
  hk_incidents_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *rest = malloc(size > 1 ? size - 1 : 1); /* its end is known */
  check(rest != NULL);
  if (size > 0) {
    memcpy(rest, data + 1, size - 1);
    if (data[0] == 0)
      try_incidents((const uint8_t *)rest, size - 1);
    if (data[0] == 1)
      try_ticks(rest, size - 1);
    if (data[0] == 2)
      try_feedback(rest, size - 1);
  }
  free(rest);
  return 0;
}
