/* Pictures on the GPU compared with the host, bit by bit: kinds of pixels, medians, subtraction, shapes, missing
 * pixels, numbers of pictures at once, and several users at once. Skips without a GPU. `sanitize`: a brief form. */
#include "gpu/cuda.h"
#include "gpu/picture/pictures_gpu.h"
#include "tests/backend/picture_cases.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KINDS 4u
#define MOST 70u /* pictures at once */

static const uint32_t bytes[] = { 1, 2, 2, 4 }; /* by kind */
static bool brief;

/* `pictures` pictures of a kind in each of two places at once, each against the host's. */
static void against_host(const struct hk_pictures_size *size, uint32_t kind, uint32_t pictures)
{
  const uint32_t tiles =
      hk_picture_tiles_over(size->height, size->rule.tile) * hk_picture_tiles_over(size->width, size->rule.tile);
  struct hk_pictures_gpu *g;
  struct hk_picture_tile *host = calloc(tiles, sizeof *host);
  char error[256] = "", what[128];
  assert_non_null(host);
  if (hk_pictures_gpu_open(&g, size, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  for (uint32_t place = 0; place < size->places; place++) {
    for (uint32_t k = 0; k < pictures; k++) {
      uint8_t *to = hk_pictures_gpu_pixels(g, place, kind, k);
      for (uint32_t r = 0; r < size->height; r++)
        for (uint32_t i = 0; i < size->width; i++)
          picture_put_pixel(to + ((size_t)r * size->width + i) * bytes[kind], kind, (place + k) % 3, r, i);
    }
    assert_int_equal(hk_pictures_gpu_begin(g, place, kind, pictures), 0);
  }
  for (uint32_t place = 0; place < size->places; place++) {
    assert_int_equal(hk_pictures_gpu_wait(g, place), 0);
    for (uint32_t k = 0; k < pictures; k++) {
      picture_by_host(&size->rule, size->height, size->width, kind, hk_pictures_gpu_pixels(g, place, kind, k), host);
      snprintf(what, sizeof what, "%u x %u, kind %u, median %u, subtract %u, tile %u, picture %u of %u", size->height,
               size->width, kind, size->rule.median, size->rule.subtract, size->rule.tile, k, pictures);
      picture_assert_same(host, hk_pictures_gpu_tiles(g, place, k), tiles, what);
    }
  }
  free(host);
  hk_pictures_gpu_close(g);
}

static void test_all_filters(void **state)
{
  (void)state;
  static const uint32_t shape[][4] = { /* height, width, tile, pictures at once */
                                       { 1, 1, 4, 1 },    { 2, 3, 4, 3 },     { 33, 47, 16, 3 },
                                       { 5, 130, 7, 2 },  { 70, 4, 32, 3 },   { 64, 80, 1024, 2 },
                                       { 40, 113, 5, 3 }, { 90, 260, 10, 2 }, { 96, 128, 32, MOST }
  };
  picture_begin(3);
  for (uint32_t s = 0; s < sizeof shape / sizeof *shape; s++)
    for (uint32_t kind = 0; kind < KINDS; kind++)
      for (uint32_t median = 0; median <= 5; median += median ? 2 : 3)
        for (uint32_t subtract = HK_PICTURE_BOX; subtract <= HK_PICTURE_NOTHING; subtract++) {
          const struct hk_pictures_size size = { { median, subtract, shape[s][2] }, shape[s][0], shape[s][1], 2, shape[s][3], 4 };
          if (!brief || (s > 1 && s < 7))
            against_host(&size, kind, shape[s][3]);
        }
}

/* Large pictures, of which a warp goes down some rows of tiles, and few or many at once. */
static void test_large(void **state)
{
  (void)state;
  static const uint32_t at_once[] = { 1, 8 };
  picture_begin(5);
  for (uint32_t n = 0; n < (brief ? 1 : 2); n++)
    for (uint32_t kind = brief ? KINDS - 1 : 0; kind < KINDS; kind++) {
      const struct hk_pictures_size size = { { kind % 2 ? 3 : 5, HK_PICTURE_BOX, 32 }, 520, 643, 2, at_once[n], 4 };
      against_host(&size, kind, at_once[n]);
    }
}

/* Sums of 225 pixels of every size, which are divided without a division instruction: noise of all brightnesses, in many
 * pictures. */
static void test_brightness(void **state)
{
  (void)state;
  const struct hk_pictures_size size = { { 0, HK_PICTURE_BOX, 8 }, 32, 112, 1, 1, 2 };
  struct hk_pictures_gpu *g;
  struct hk_picture_tile host[4 * 14];
  char error[256] = "";
  picture_begin(7);
  if (hk_pictures_gpu_open(&g, &size, 0, error, sizeof error) != 0)
    fail_msg("%s", error);
  for (uint32_t k = 0; k < (brief ? 3 : 600); k++) {
    uint16_t *x = hk_pictures_gpu_pixels(g, 0, HK_PICTURE_U16, 0);
    for (uint32_t i = 0; i < 32 * 112; i++)
      x[i] = (uint16_t)(picture_noise() % 2 ? 65535 - picture_noise() % (1 + 109 * k) : picture_noise() % (1 + 109 * k));
    assert_int_equal(hk_pictures_gpu_begin(g, 0, HK_PICTURE_U16, 1), 0);
    assert_int_equal(hk_pictures_gpu_wait(g, 0), 0);
    picture_by_host(&size.rule, 32, 112, HK_PICTURE_U16, x, host);
    picture_assert_same(host, hk_pictures_gpu_tiles(g, 0, 0), 4 * 14, "brightness");
  }
  hk_pictures_gpu_close(g);
}

/* As the daemon has them, one after the other. */
static void test_one_at_a_time(void **state)
{
  (void)state;
  const struct hk_picture_rule rule = { 3, HK_PICTURE_BOX, 16 };
  const struct hk_picture_tile *got;
  struct hk_picture_tile host[5 * 9];
  char error[256] = "";
  void *space;
  picture_begin(9);
  assert_int_equal(hk_cuda_pictures.open(&space, &rule, 75, 131, 0, error, sizeof error), 0);
  for (uint32_t kind = 0; kind < KINDS; kind++) {
    uint8_t *to = hk_cuda_pictures.pixels(space);
    for (uint32_t i = 0; i < 75 * 131; i++)
      picture_put_pixel(to + (size_t)i * bytes[kind], kind, 2, i / 131, i % 131);
    assert_int_equal(hk_cuda_pictures.tiles(space, kind, &got, error, sizeof error), 0);
    picture_by_host(&rule, 75, 131, kind, to, host);
    picture_assert_same(host, got, 5 * 9, "one at a time");
  }
  hk_cuda_pictures.close(space);
}

static void test_says_what_is_missing(void **state)
{
  (void)state;
  const struct hk_pictures_size size = { { 3, HK_PICTURE_BOX, 32 }, 64, 64, 2, 3, 2 };
  struct hk_pictures_gpu *g;
  char error[256] = "";
  assert_true(hk_pictures_gpu_bytes(&size) > 2 * 3 * 64 * 64 * 2);
  assert_int_equal(hk_pictures_gpu_open(&g, &size, 1000, error, sizeof error), -ENODEV);
  assert_null(g);
  assert_true(strlen(error) > 5);
}

int main(int n_args, char **args)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_filters), cmocka_unit_test(test_large),
                                      cmocka_unit_test(test_brightness), cmocka_unit_test(test_one_at_a_time),
                                      cmocka_unit_test(test_says_what_is_missing) };
  const struct hk_pictures_size size = { { 3, HK_PICTURE_BOX, 32 }, 32, 32, 1, 1, 4 };
  struct hk_pictures_gpu *g;
  char error[256];
  brief = n_args > 1 && strcmp(args[1], "sanitize") == 0;
  if (hk_pictures_gpu_open(&g, &size, 0, error, sizeof error) == -ENODEV) {
    printf("1..0 # SKIP %s\n", error);
    return 0;
  }
  hk_pictures_gpu_close(g);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
