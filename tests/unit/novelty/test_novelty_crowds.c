/* Novelty: what is nearer to one point of a run than all else by a hair is found, however the points make crowds. Random series
 * hardly come to such cases. */
#include "cpu/novelty/state.h"
#include "cpu/sst/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define RUN 24 /* points: three crowds */
#define OLD_VALUES 600
#define OLD_ROWS 100
#define HAIR 0.99999f
#define FAR -50 /* what stands where nothing is near */

/* A sensor whose memory is written by hand, and a run of its points. */
struct sensor {
  float *ring;
  struct hk_novelty_view view;
  struct hk_novelty_point point[RUN];
};

static struct sensor sensor_new(const struct hk_detector *d)
{
  struct sensor s = { .ring = calloc(hk_detector_span(d), sizeof(float)) };
  void *memory = calloc(1, hk_novelty_bytes(d, sizeof(float)));
  assert_true(s.ring && memory);
  s.view = hk_novelty_view(memory, d);
  const uint32_t rows = hk_novelty_rows_most(d), room = hk_detector_span(d);
  for (uint32_t k = 0; k < RUN; k++) {
    struct hk_novelty_point *p = &s.point[k];
    *p = (struct hk_novelty_point){
      .at = (room - 100 + k) % room, .before = room - 1, .rows = rows, .row = rows - 20, .age = room
    };
    for (int m = 0; m < HK_NOVELTY_MEANS; m++)
      p->weight[m] = 1;
  }
  return s;
}

static void row_set(struct sensor *s, uint32_t place, float mean)
{
  for (int m = 0; m < HK_NOVELTY_MEANS; m++)
    s->view.row[m][place] = mean;
}

static void sensor_free(struct sensor *s)
{
  free(s->ring);
  free(s->view.novelty);
}

/* Compares what a set of kernels finds with the plain pass, and returns how many points found less than `usual` says. */
static uint32_t nearer_than(const struct hk_kernels *kernels, struct sensor *s, int channel, const float *usual, uint32_t place)
{
  struct hk_novelty_point found[RUN];
  uint32_t nearer = 0;
  hk_novelty_reset(&s->view);
  memcpy(found, s->point, sizeof found);
  kernels->novelty_pass(&s->view, s->ring, found, RUN);
  hk_novelty_reset(&s->view);
  hk_novelty_pass_plain(&s->view, s->ring, s->point, RUN);
  for (uint32_t k = 0; k < RUN; k++) {
    const float a = s->point[k].nearest[channel], b = found[k].nearest[channel];
    if (memcmp(&a, &b, sizeof a) != 0)
      fail_msg("%s, place %u, point %u: %.9g, and %.9g", kernels->name, place, k, (double)a, (double)b);
    nearer += a < usual[k];
  }
  return nearer;
}

/* The newest values are 0, older ones far, but for one, which is nearer to the greatest point of the run. */
static void a_value_is_nearer_by_a_hair(void **state)
{
  (void)state;
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s,channels=value", &d, error, sizeof error), 0);
  struct sensor s = sensor_new(&d);
  for (uint32_t place = 0; place < OLD_VALUES; place++)
    s.ring[place] = FAR;
  float usual[RUN];
  for (uint32_t k = 0; k < RUN; k++)
    usual[k] = s.point[k].value = 1 + 1e-3f * (float)(k * 7 % RUN); /* in no order */
  const float greatest = 1 + 1e-3f * (RUN - 1);
  for (const struct hk_kernels *const *set = hk_kernels_all(); *set; set++)
    for (uint32_t place = 0; place < OLD_VALUES; place += 37) {
      s.ring[place] = greatest + HAIR * greatest;
      assert_int_equal(nearer_than(*set, &s, HK_NOVELTY_VALUE, usual, place), 1);
      s.ring[place] = FAR;
    }
  sensor_free(&s);
}

/* The newest rows are 0, older ones far, but for one, which is nearer to a point of one crowd. This crowd is far from the others,
 * whose points are near 0 but weigh more. */
static void a_row_is_nearer_by_a_hair(void **state)
{
  (void)state;
  struct hk_detector d;
  char error[256];
  assert_int_equal(hk_detector_parse("algorithm=novelty,resident=1000,interval=1s", &d, error, sizeof error), 0);
  for (uint32_t crowd = 0; crowd < 3; crowd++) {
    struct sensor s = sensor_new(&d);
    float usual[RUN];
    for (uint32_t place = 0; place < OLD_ROWS; place++)
      row_set(&s, place, FAR);
    for (uint32_t k = 0; k < RUN; k++) {
      struct hk_novelty_point *p = &s.point[k];
      const bool far = k / 8 == crowd;
      for (int m = 0; m < HK_NOVELTY_MEANS; m++) {
        p->mean[m] = far ? 1 + 1e-3f * (float)(k % 8) : 1e-3f;
        p->weight[m] = far ? 1 : 10;
      }
      usual[k] = hk_novelty_row_distance(&s.view, p, s.point[0].row - 1);
    }
    for (const struct hk_kernels *const *set = hk_kernels_all(); *set; set++)
      for (uint32_t place = 0; place < OLD_ROWS; place += 11) {
        row_set(&s, place, 1.007f + HAIR * 1.007f);
        assert_int_equal(nearer_than(*set, &s, HK_NOVELTY_CONTEXT, usual, place), 1);
        row_set(&s, place, FAR);
      }
    sensor_free(&s);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_value_is_nearer_by_a_hair),
    cmocka_unit_test(a_row_is_nearer_by_a_hair),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
