/* Incidents: they equal the model's, keep their invariants under storms, and continue from an image without a difference. */
#include "daemon/incidents/incident_members.h"
#include "daemon/incidents/incidents_image.h"
#include "daemon/incidents/incidents_internal.h"
#include "tests/unit/support/noise.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)

/* The decisions: a hash of all, and the times of messages. */
struct heard {
  struct hk_incidents *all;
  uint64_t decisions, sum;
  int64_t told[4096];
  uint32_t n_told;
  struct hk_buffer text; /* a line a decision, as the model writes them */
};

static void hear(void *arg, int64_t time, enum hk_incident_decision d, const struct hk_incident *i,
                 const struct hk_incident *into, double threshold)
{
  static const char *const names[] = { "PAGE", "UPDATE", "MERGED", "CLOSED" };
  struct heard *h = arg;
  if (d == HK_INCIDENT_ABSORBED)
    return;
  const uint64_t numbers[] = { (uint64_t)time, d, i->id, into ? into->id : 0, i->n };
  h->decisions++;
  h->sum = XXH3_64bits_withSeed(numbers, sizeof numbers, h->sum);
  h->sum = XXH3_64bits_withSeed(&i->R, sizeof i->R, h->sum);
  hk_buffer_print(&h->text, "%s %llu %.4f %u", d == HK_INCIDENT_CLOSED && !i->told ? "WITHHELD" : names[d],
                  (unsigned long long)i->id, i->R, i->n);
  if (d == HK_INCIDENT_TOLD) {
    uint32_t ties;
    const struct hk_fleet_sensor *first = hk_incident_first(h->all, i, NULL, 0, &ties);
    assert_non_null(first);
    hk_buffer_print(&h->text, " %.2f %s %u %.3f", threshold, first->leaf->name.data, ties, i->company);
    assert_true(h->n_told < 4096);
    h->told[h->n_told++] = time;
  }
  if (into)
    hk_buffer_print(&h->text, " %llu", (unsigned long long)into->id);
  hk_buffer_print(&h->text, "\n");
}

static struct heard *begin(const struct hk_incidents_rules *rules)
{
  struct heard *h = calloc(1, sizeof *h);
  assert_non_null(h);
  assert_int_equal(hk_incidents_new(&h->all, rules, hear, h), 0);
  return h;
}

static void end(struct heard *h)
{
  hk_incidents_free(h->all);
  hk_buffer_free(&h->text);
  free(h);
}

/* Another instance continues from its image. */
static void restart(struct heard *h)
{
  struct hk_buffer image = { 0 }, again = { 0 };
  const struct hk_incidents_rules rules = h->all->rules;
  hk_incidents_write(h->all, &image);
  assert_false(image.failed);
  hk_incidents_free(h->all);
  assert_int_equal(hk_incidents_new(&h->all, &rules, hear, h), 0);
  assert_int_equal(hk_incidents_read(h->all, image.data, image.size), 0);
  hk_incidents_write(h->all, &again);
  assert_int_equal(again.size, image.size);
  assert_memory_equal(again.data, image.data, image.size);
  hk_buffer_free(&image);
  hk_buffer_free(&again);
}

/* --- the model ---------------------------------------------------------------------------------------------------------- */

static void learn(struct heard *h, char *line)
{
  struct hk_string words[8];
  uint32_t n = 0;
  char *rest = NULL;
  for (char *word = strtok_r(line, " ", &rest); word && n < 8; word = strtok_r(NULL, " ", &rest))
    words[n++] = hk_string(word);
  assert_int_equal(hk_incidents_learn(h->all, words[0], words + 1, n - 1), 0);
}

/* The model's fleet, with a restart every `restarts` events (0: none). All decisions are those of the model, in its order. */
static void run_model(uint32_t restarts)
{
  const char *path = getenv("INCIDENTS");
  FILE *file = fopen(path ? path : "tests/data/expected_incidents.txt", "r");
  struct heard *h = NULL;
  struct hk_buffer expected = { 0 };
  char line[512];
  long long interval = 0, tick, back;
  unsigned sensor, channel, events = 0;
  double S;
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "interval %lld", &interval) == 1)
      h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = interval * SECOND });
    else if (strncmp(line, "sensor ", 7) == 0)
      learn(h, line + 7);
    else if (sscanf(line, "%lld %u %u %lf %lld", &tick, &sensor, &channel, &S, &back) == 5) {
      const struct hk_string name = h->all->names.sensors[sensor]->leaf->name;
      const int64_t time = tick * interval * SECOND;
      assert_int_equal(hk_incidents_event(h->all, time, name, channel, S, time - back * interval * SECOND), 0);
      hk_incidents_said(h->all, hk_string(S > 2 ? "it rose" : ""));
      if (restarts > 0 && ++events % restarts == 0)
        restart(h);
    } else if (strcmp(line, "end") == 0)
      hk_incidents_finish(h->all);
    else
      hk_buffer_print(&expected, "%s\n", line);
  }
  fclose(file);
  assert_true(h->n_told > 100);
  const char *a = h->text.data, *b = expected.data;
  for (uint32_t number = 1; *a && *b; number++) {
    const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
    if (n != m || memcmp(a, b, n) != 0)
      fail_msg("decision %u is '%.*s', the model's '%.*s'", number, (int)n, a, (int)m, b);
    a += n + 1;
    b += m + 1;
    if (a >= h->text.data + h->text.size || b >= expected.data + expected.size)
      break;
  }
  assert_int_equal(h->text.size, expected.size);
  hk_buffer_free(&expected);
  end(h);
}

static void test_model(void **state)
{
  (void)state;
  run_model(0);
}

static void test_model_restarted(void **state)
{
  (void)state;
  run_model(97);
}

/* --- invariants --------------------------------------------------------------------------------------------------------- */

/* Members refer to the incident that lists them, sensors that refer to an incident are in its list, and the tail has each
 * once. */
static void look(const struct hk_incidents *all)
{
  uint32_t members = 0, open = 0, said = 0;
  for (const struct hk_incident *i = all->oldest; i; i = i->newer, open++) {
    uint32_t n = 0;
    for (const struct hk_fleet_sensor *m = i->members; m; m = m->next, n++)
      assert_ptr_equal(m->incident, i);
    assert_int_equal(n, i->n);
    assert_true(!i->newer || i->newer->last >= i->last);
    members += n;
  }
  for (uint32_t i = 0; i < all->names.n_sensors; i++)
    said += all->names.sensors[i]->incident != NULL;
  assert_int_equal(said, members);
  assert_int_equal(all->counts.members, members);
  assert_int_equal(all->counts.open, open);
  for (uint32_t i = 0; i < HK_TAIL_BINS; i++)
    assert_true(all->tail.count[i] > -1e-6);
}

/* 8 days of noise, with storms of up to the whole fleet, in which many are equally grave; returns the sum of all decisions. */
static uint64_t storms(uint64_t with, uint32_t restarts, double a_day, uint32_t *most)
{
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = a_day, .interval = MINUTE, .most_members = 200 });
  seed = with;
  uint32_t events = 0;
  for (uint32_t minute = 0; minute < 8 * 1440; minute++) {
    const bool storm = uniform() < .003;
    const uint32_t n = storm ? (uint32_t)(300 * uniform()) : (uint32_t)(-.7 * log(uniform()));
    for (uint32_t i = 0; i < n; i++) {
      char name[64];
      const uint32_t s = (uint32_t)(640 * uniform());
      const double some = 1.5 - log(uniform()) / (storm ? .5 : 2.3), S = storm ? rint(4 * some) / 4 : some;
      const int64_t late = uniform() < .05 ? 5 : 0;
      (void)snprintf(name, sizeof name, "a%u/b%u.c%u", s / 64, s / 8, s % 8);
      const int64_t time = ((int64_t)minute - late) * MINUTE;
      const int status = hk_incidents_event(h->all, time, hk_string(name), s % 3, S, time);
      assert_true(status == 0 || (status == -ENOSPC && h->all->counts.members == 200));
      if (restarts > 0 && ++events % restarts == 0)
        restart(h);
    }
    if (minute % 100 == 0)
      look(h->all);
  }
  hk_incidents_finish(h->all);
  look(h->all);
  double sum = 0;
  for (uint32_t i = 0; i < HK_TAIL_BINS; i++)
    sum += h->all->tail.count[i] / h->all->tail.weight;
  assert_true(sum > 0 && sum <= (double)h->all->counts.opened);
  *most = 0;
  for (uint32_t i = 0; i < h->n_told; i++) {
    uint32_t n = 0;
    while (i + n < h->n_told && h->told[i + n] < h->told[i] + HK_DAY)
      n++;
    *most = n > *most ? n : *most;
  }
  const uint64_t decided = h->sum;
  assert_true(a_day == 0 ? h->n_told == 0 : h->n_told > 0);
  assert_true(h->all->counts.unlisted > 0);
  end(h);
  return decided;
}

static void test_storms(void **state)
{
  (void)state;
  static const double budgets[] = { 10, 30, 2, 0 };
#ifdef HK_SANITIZED
  const uint32_t step = 3; /* first and last */
#else
  const uint32_t step = 1;
#endif
  for (uint32_t i = 0; i < 4; i += step) {
    const double full = fmax(3, .5 * budgets[i]);
    uint32_t most, again;
    const uint64_t decided = storms(i + 1, 0, budgets[i], &most);
    assert_true(most <= full + budgets[i]);
    assert_true(storms(i + 1, 61, budgets[i], &again) == decided);
    assert_int_equal(again, most);
  }
}

/* --- what is odd -------------------------------------------------------------------------------------------------------- */

static void test_odd_events(void **state)
{
  (void)state;
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE, .most_names = 3 });
  const struct hk_string a = hk_string("a");
  assert_int_equal(hk_incidents_event(h->all, 0, a, 0, NAN, 0), 0);
  assert_int_equal(hk_incidents_event(h->all, 0, a, 0, INFINITY, 0), 0);
  assert_int_equal(hk_incidents_event(h->all, 0, a, HK_INCIDENT_CHANNELS, 3, 0), 0);
  assert_int_equal(hk_incidents_count(h->all).not_finite, 3);
  assert_int_equal(hk_incidents_event(h->all, 0, a, 0, 1.4, 0), 0);
  assert_int_equal(hk_incidents_count(h->all).opened, 0);
  assert_int_equal(hk_incidents_event(h->all, 1000 * MINUTE, a, 0, 1e9, 0), 0);
  assert_int_equal(hk_incidents_event(h->all, INT64_MIN, hk_string("b"), 0, 2, INT64_MIN), 0); /* backwards: now */
  assert_true(h->all->names.sensors[0]->S == HK_SEVERITY_MOST);
  assert_true(h->all->names.sensors[1]->raised == 1000 * MINUTE);
  assert_int_equal(hk_incidents_event(h->all, INT64_MAX, hk_string("c"), 0, 2, INT64_MAX), 0); /* a leap closes what is open */
  assert_int_equal(hk_incidents_count(h->all).open, 1);
  assert_int_equal(hk_incidents_event(h->all, INT64_MAX, hk_string("d"), 0, 2, 0), -ENOSPC);
  assert_int_equal(hk_incidents_learn(h->all, hk_string(""), NULL, 0), -EINVAL);
  assert_int_equal(hk_incidents_count(h->all).unlisted, 1);
  assert_true(h->all->tail.exposure <= 3); /* no sensor was observed in between */
  assert_true(h->all->budget.tokens <= h->all->budget.full);
  restart(h);
  end(h);
  struct hk_incidents *none;
  assert_int_equal(hk_incidents_new(&none, &(struct hk_incidents_rules){ .a_day = -1, .interval = MINUTE }, hear, NULL), -EINVAL);
  assert_int_equal(hk_incidents_new(&none, &(struct hk_incidents_rules){ .a_day = NAN, .interval = MINUTE }, hear, NULL),
                   -EINVAL);
  assert_int_equal(hk_incidents_new(&none, &(struct hk_incidents_rules){ .a_day = 1, .interval = 0 }, hear, NULL), -EINVAL);
}

/* A tick that is over is judged without waiting for another event, and only once. */
static void test_reach(void **state)
{
  (void)state;
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
  assert_int_equal(hk_incidents_event(h->all, MINUTE, hk_string("a"), 0, 9, 0), 0);
  hk_incidents_reach(h->all, MINUTE);
  assert_int_equal(h->n_told, 0);
  hk_incidents_reach(h->all, 2 * MINUTE);
  assert_int_equal(h->n_told, 1);
  hk_incidents_reach(h->all, 3 * MINUTE);
  assert_int_equal(h->decisions, 1);
  end(h);
}

/* The weights of a tail are rescaled before they are too large, and its answers stay the same. */
static void test_long_life(void **state)
{
  (void)state;
  struct hk_fleet_tail t;
  hk_tail_init(&t, MINUTE);
  double scale = 1, before = 0, after = 0;
  for (int64_t day = 0; scale == 1 && day < 400; day++) {
    before = hk_tail_threshold(&t, 10, 1000);
    scale = hk_tail_clock(&t, day * HK_DAY, 1000);
    after = hk_tail_threshold(&t, 10, 1000);
    for (uint32_t i = 0; i < 100; i++)
      hk_tail_add(&t, .05 * i, t.weight);
    assert_true(t.weight < 1.1e9);
  }
  assert_true(scale >= 1073741824.0);
  assert_true(fabs(after - before) <= 2 * HK_TAIL_BIN);
  assert_true(before > 2);
}

/* An alert at a minute, and how far the data of other sensors were then. */
static void late_event(struct heard *h, int64_t minute, const char *name, int64_t reached)
{
  hk_incidents_hear(h->all, reached * MINUTE);
  assert_int_equal(hk_incidents_event(h->all, minute * MINUTE, hk_string(name), 0, 4, 0), 0);
}

/* An incident is open until this minute, and not longer. */
static void open_until(struct heard *h, const char *name, int64_t minute)
{
  hk_incidents_expire(h->all, minute * MINUTE);
  assert_non_null(hk_incidents_open(h->all, hk_string(name), 0));
  hk_incidents_expire(h->all, minute * MINUTE + 1);
  assert_null(hk_incidents_open(h->all, hk_string(name), 0));
}

/* Incidents of sensors whose data are late end a hold after their alerts came, also after a restart, or once their sensor has an
 * alert a hold later; those of others, a hold after the last alert. */
static void test_late(void **state)
{
  (void)state;
  static const int64_t reached[] = { 0, 1 + HK_INCIDENT_WINDOW, 2 + HK_INCIDENT_WINDOW, 600 }, until[] = { 61, 61, 74, 660 };
  struct heard *h;
  for (int i = 0; i < 4; i++) {
    h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
    late_event(h, 1, "a", reached[i]);
    restart(h);
    open_until(h, "a", until[i]);
    end(h);
  }
  h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
  late_event(h, 1, "x.a", 600);
  late_event(h, 20, "y.b", 0);
  open_until(h, "y.b", 80);      /* not hidden by what began before it */
  late_event(h, 61, "x.a", 639); /* all at once: still the first */
  late_event(h, 122, "x.a", 639);
  late_event(h, 698, "z.c", 0);
  late_event(h, 124, "x.a", 699);
  restart(h);
  late_event(h, 185, "x.a", 701); /* a new one, also after an alert of others, and at once a part of the last one */
  assert_int_equal(hk_incidents_joined(h->all), 4);
  end(h);
}

/* An image of an earlier version does not say how far the data were; that of one before differs in the magic number alone. */
static void make_old(struct hk_buffer *image, const struct hk_incidents *all)
{
  const size_t head = 32;
  const struct hk_incident *i = all->oldest;
  if (i) {
    const int64_t times[] = { i->open, i->last, i->heard, i->own };
    char *at = memmem(image->data, image->size, times, sizeof times);
    assert_non_null(at);
    memmove(at + 16, at + 32, (size_t)(image->data + image->size - at) - 32);
    image->size -= 16;
  }
  const uint64_t size = image->size - head, sum = XXH3_64bits_withSeed(image->data + head, size, size);
  memcpy(image->data + 8, &size, sizeof size);
  memcpy(image->data + 16, &sum, sizeof sum);
}

static void test_old_image(void **state)
{
  (void)state;
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
  const struct hk_incidents_rules rules = h->all->rules;
  struct hk_buffer image[2] = { { 0 } };
  assert_int_equal(hk_incidents_event(h->all, MINUTE, hk_string("m.a"), 1, 4, 0), 0);
  assert_int_equal(hk_incidents_event(h->all, 2 * MINUTE, hk_string("m.a"), 1, 4, 0), 0);
  hk_incidents_write(h->all, &image[0]); /* with a member */
  make_old(&image[0], h->all);
  hk_incidents_finish(h->all);
  hk_incidents_write(h->all, &image[1]); /* without */
  make_old(&image[1], h->all);
  for (int i = 0; i < 2; i++) {
    hk_incidents_free(h->all);
    assert_int_equal(hk_incidents_new(&h->all, &rules, hear, h), 0);
    image[i].data[7] = '2';
    assert_int_equal(hk_incidents_read(h->all, image[i].data, image[i].size), 0);
    assert_true(i == 1 || hk_incidents_expired(h->all, (2 + HK_INCIDENT_HOLD) * MINUTE + 1));
    hk_incidents_free(h->all);
    assert_int_equal(hk_incidents_new(&h->all, &rules, hear, h), 0);
    image[i].data[7] = '1';
    assert_int_equal(hk_incidents_read(h->all, image[i].data, image[i].size), i == 0 ? -EBADMSG : 0);
    hk_buffer_free(&image[i]);
  }
  assert_int_equal(hk_incidents_last(h->all), 1);
  end(h);
}

/* Sensors that were known before their machine's group: the group has them, and an image has all in its place. */
static void test_late_group(void **state)
{
  (void)state;
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
  const struct hk_string groups[] = { hk_string("g") };
  struct hk_fleet_sensor *s;
  static const char *const names[] = { "m.a", "n.b", "x.y.z", "x.y.w" };
  for (uint32_t i = 0; i < 4; i++)
    assert_int_equal(hk_incidents_learn(h->all, hk_string(names[i]), NULL, 0), 0);
  for (uint32_t i = 0; i < 2; i++)
    assert_int_equal(hk_incidents_learn(h->all, hk_string(names[i]), groups, 1), 0);
  for (uint32_t i = 0; i < 4; i++)
    assert_int_equal(hk_incidents_event(h->all, i * MINUTE, hk_string(names[i]), 1, 4 + i, 0), 0);
  s = hk_fleet_find(&h->all->names, hk_string("n.b"));
  assert_true(s->n_groups == 1 && s->groups[0].above->sensors == 2);
  assert_true(s->groups[0].active);
  struct hk_buffer image = { 0 }, again = { 0 };
  const struct hk_incidents_rules rules = h->all->rules;
  hk_incidents_write(h->all, &image);
  hk_incidents_free(h->all);
  assert_int_equal(hk_incidents_new(&h->all, &rules, hear, h), 0);
  assert_int_equal(hk_incidents_read(h->all, image.data, image.size), 0);
  s = hk_fleet_find(&h->all->names, hk_string("n.b"));
  assert_string_equal(s->groups[0].above->name.data, "[g]");
  assert_int_equal(s->groups[0].above->n_active, 2);
  assert_int_equal(hk_fleet_find(&h->all->names, hk_string("x.y.w"))->leaf->self.above->n_active, 2);
  hk_incidents_write(h->all, &again);
  assert_int_equal(image.size, again.size);
  assert_memory_equal(image.data, again.data, image.size);
  hk_buffer_free(&image);
  hk_buffer_free(&again);
  end(h);
}

/* An image with any byte damaged is refused, or read as something consistent. */
static void test_damaged_image(void **state)
{
  (void)state;
  struct heard *h = begin(&(struct hk_incidents_rules){ .a_day = 10, .interval = MINUTE });
  const struct hk_string groups[] = { hk_string("g") };
  assert_int_equal(hk_incidents_learn(h->all, hk_string("m.a"), groups, 1), 0);
  assert_int_equal(hk_incidents_learn(h->all, hk_string("m.b"), groups, 1), 0);
  for (int64_t i = 0; i < 4; i++)
    assert_int_equal(hk_incidents_event(h->all, i * MINUTE, hk_string(i % 2 ? "m.a" : "m.b"), 1, 4 + (double)i, 0), 0);
  hk_incidents_said(h->all, hk_string("it rose"));
  struct hk_buffer image = { 0 };
  hk_incidents_write(h->all, &image);
  const struct hk_incidents_rules rules = h->all->rules;
  const size_t head = 32, histograms = head + 2 * HK_TAIL_BINS * sizeof(double);
  for (size_t at = head; at < image.size; at += at < histograms ? 501 : 1) {
    for (uint32_t bit = 0; bit < 8; bit++) {
      char *copy = malloc(image.size);
      struct hk_incidents *all;
      assert_non_null(copy);
      memcpy(copy, image.data, image.size);
      copy[at] = (char)(copy[at] ^ 1 << bit);
      assert_int_equal(hk_incidents_new(&all, &rules, hear, h), 0);
      assert_int_equal(hk_incidents_read(all, copy, image.size), -EBADMSG); /* by its checksum */
      hk_incidents_free(all);
      const uint64_t sum = XXH3_64bits_withSeed(copy + head, image.size - head, image.size - head);
      memcpy(copy + 16, &sum, sizeof sum);
      assert_int_equal(hk_incidents_new(&all, &rules, hear, h), 0);
      const int status = hk_incidents_read(all, copy, image.size);
      assert_true(status == 0 || status == -EBADMSG);
      if (status == 0) {
        struct heard other = { .all = all };
        all->arg = &other;
        (void)hk_incidents_event(all, 9 * MINUTE, hk_string("m.a"), 0, 5, 0);
        (void)hk_incidents_event(all, 9 * MINUTE, hk_string("m.c"), 0, 5, 0);
        hk_incidents_finish(all);
        hk_buffer_free(&other.text);
      }
      hk_incidents_free(all);
      free(copy);
    }
  }
  for (size_t size = 0; size < image.size; size += size < 64 ? 1 : 97) {
    struct hk_incidents *all;
    assert_int_equal(hk_incidents_new(&all, &rules, hear, h), 0);
    assert_int_equal(hk_incidents_read(all, image.data, size), -EBADMSG);
    hk_incidents_free(all);
  }
  hk_buffer_free(&image);
  end(h);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_model),      cmocka_unit_test(test_model_restarted), cmocka_unit_test(test_storms),
    cmocka_unit_test(test_odd_events), cmocka_unit_test(test_reach),           cmocka_unit_test(test_long_life),
    cmocka_unit_test(test_old_image),  cmocka_unit_test(test_late_group),      cmocka_unit_test(test_damaged_image),
    cmocka_unit_test(test_late),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
