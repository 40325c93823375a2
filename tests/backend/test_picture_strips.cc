/* Pictures as the CUDA kernels compute them, by a warp that is emulated, against the host's, bit by bit. */
#include "tests/backend/emulated_warp.h"

#include "gpu/picture/strip.cuh"
#include "tests/backend/picture_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

extern "C" {
#include <cmocka.h>
}

#define PICTURES 2u

/* What there is of a launch. */
struct launch {
  struct hk_pictures_task task;
  std::vector<char> pixels;
  std::vector<float> columns;
  std::vector<struct hk_picture_tile> tiles;
};

template <typename P, int MEDIAN, int SUBTRACT> static void filter(const struct hk_pictures_task &t, uint32_t enough)
{
  const struct deal deal = deal_out<MEDIAN, SUBTRACT>(&t, enough);
  for (uint32_t warp = 0; warp < t.pictures * deal.strips * deal.groups; warp++) {
    typename rows_kept<P, SUBTRACT>::memory memory;
    memset((void *)&memory, 0xff, sizeof memory);
    emulated_warp::run([&] { filter_strip<P, MEDIAN, SUBTRACT>(t, deal, warp, &memory); });
  }
}

template <typename P, int MEDIAN> static void filter_less(const struct hk_pictures_task &t, uint32_t enough)
{
  if (t.rule.subtract == HK_PICTURE_BOX)
    filter<P, MEDIAN, HK_PICTURE_BOX>(t, enough);
  else if (t.rule.subtract == HK_PICTURE_LAPLACIAN)
    filter<P, MEDIAN, HK_PICTURE_LAPLACIAN>(t, enough);
  else
    filter<P, MEDIAN, HK_PICTURE_NOTHING>(t, enough);
}

template <typename P> static void filter_median(const struct hk_pictures_task &t, uint32_t enough)
{
  if (t.rule.median == 3)
    filter_less<P, 3>(t, enough);
  else if (t.rule.median == 5)
    filter_less<P, 5>(t, enough);
  else
    filter_less<P, 0>(t, enough);
}

static void against_host(const struct hk_picture_rule &rule, uint32_t height, uint32_t width, uint32_t kind, uint32_t enough)
{
  const uint32_t down = hk_picture_tiles_over(height, rule.tile), tiles = down * hk_picture_tiles_over(width, rule.tile);
  const uint32_t pixel = kind == HK_PICTURE_U8 ? 1 : kind == HK_PICTURE_F32 ? 4 : 2;
  struct launch l = {};
  l.task.rule = rule;
  l.task.height = height;
  l.task.width = width;
  l.task.kind = kind;
  l.task.pictures = PICTURES;
  l.task.apart = ((size_t)height * width * pixel + 15) / 16 * 16;
  l.pixels.resize(PICTURES * l.task.apart + 16);
  l.columns.assign((size_t)PICTURES * down * HK_PICTURES_COLUMNS * hk_pictures_pitch(width) + 4, NAN);
  l.tiles.resize(PICTURES * tiles);
  char *const pixels = l.pixels.data() + (16 - (uintptr_t)l.pixels.data() % 16) % 16;
  for (uint32_t k = 0; k < PICTURES; k++)
    for (uint32_t i = 0; i < height * width; i++)
      picture_put_pixel((uint8_t *)pixels + k * l.task.apart + i * pixel, kind, k + kind % 2, i / width, i % width);
  l.task.pixels = pixels;
  l.task.columns = l.columns.data() + (16 - (uintptr_t)l.columns.data() % 16) % 16 / 4;
  l.task.tiles = l.tiles.data();
  if (kind == HK_PICTURE_U8)
    filter_median<whole<1>>(l.task, enough);
  else if (kind == HK_PICTURE_U16)
    filter_median<whole<2>>(l.task, enough);
  else if (kind == HK_PICTURE_F16)
    filter_median<real<2>>(l.task, enough);
  else
    filter_median<real<4>>(l.task, enough);
  for (uint32_t k = 0; k < PICTURES * tiles; k++)
    sum_up_tile(l.task, k);
  for (uint32_t k = 0; k < PICTURES; k++) {
    std::vector<struct hk_picture_tile> host(tiles);
    char what[128];
    picture_by_host(&rule, height, width, kind, pixels + k * l.task.apart, host.data());
    snprintf(what, sizeof what, "%u x %u, kind %u, median %u, subtract %u, tile %u, picture %u", height, width, kind, rule.median,
             rule.subtract, rule.tile, k);
    picture_assert_same(host.data(), &l.tiles[k * tiles], tiles, what);
  }
}

static void test_the_same_as_the_host(void **)
{
  /* height, width, tile, warps: one beside the other and below, sizes that are no multiple of anything */
  static const uint32_t shape[][4] = { { 1, 1, 4, 1 },   { 2, 3, 4, 9 },     { 33, 47, 16, 9 }, { 5, 130, 7, 1 },
                                       { 70, 4, 32, 9 }, { 40, 113, 5, 20 }, { 21, 128, 64, 1 } };
  picture_begin(3);
  for (const uint32_t(&s)[4] : shape)
    for (uint32_t kind = HK_PICTURE_U8; kind <= HK_PICTURE_F32; kind++)
      for (uint32_t median = 0; median <= 5; median += median ? 2 : 3)
        for (uint32_t subtract = HK_PICTURE_BOX; subtract <= HK_PICTURE_NOTHING; subtract++)
          against_host({ median, subtract, s[2] }, s[0], s[1], kind, s[3]);
}

/* Every sum of 225 pixels of 16 bits: the quotient by a reciprocal is that of a division. */
static void test_every_quotient(void **)
{
  for (uint32_t n = 0; n <= 225 * 65535; n++)
    if (by_225((float)n) != (float)n / 225.0f)
      fail_msg("%u / 225: %a, not %a", n, (double)by_225((float)n), (double)((float)n / 225.0f));
}

int main()
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_same_as_the_host), cmocka_unit_test(test_every_quotient) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
