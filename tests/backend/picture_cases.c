#include "tests/backend/picture_cases.h"
#include "proto/wire/picture.h"
#include "tests/unit/support/noise.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

void picture_begin(uint64_t from)
{
  seed = from;
}

uint32_t picture_noise(void)
{
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(seed >> 32);
}

void picture_put_pixel(uint8_t *to, uint32_t kind, uint32_t scene, uint32_t r, uint32_t i)
{
  static const uint16_t odd_halves[] = { 0, 0x8000, 1, 0x8001, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3c00 };
  static const float odd_floats[] = { 0.0f, -0.0f, 1e-45f, -1e-40f, 3e38f, -3e38f, 3.2e38f, INFINITY, -INFINITY, NAN, 1.0f };
  const double wave = 40 * sin(r / 9.0) * cos(i / 14.0) + 10 * uniform();
  const uint32_t any = picture_noise();
  const bool odd = scene == 2 && (uniform() < 0.03 || (r % 17 < 4 && i % 23 < 5));
  uint16_t u16 = scene == 0 ? (uint16_t)(30000 + 20 * wave) : scene == 1 ? (uint16_t)any : (any & 1) ? 65535 : 0;
  float f32 = (float)(scene == 1 ? 1e6 + wave : wave);
  switch (kind) {
  case HK_PICTURE_U8:
    *to = scene == 0 ? (uint8_t)(100 + wave) : scene == 1 ? (uint8_t)any : (any & 1) ? 255 : 0;
    return;
  case HK_PICTURE_F16:
    u16 = odd          ? odd_halves[any % 10]
          : scene == 1 ? (uint16_t)((any & 0x83ff) | (any >> 16 & 15) << 10)
                       : (uint16_t)(0x5000 + any % 999);
    break;
  case HK_PICTURE_F32:
    f32 = odd ? odd_floats[any % 11] : f32;
    memcpy(to, &f32, sizeof f32);
    return;
  }
  memcpy(to, &u16, sizeof u16);
}

void picture_by_host(const struct hk_picture_rule *rule, uint32_t height, uint32_t width, uint32_t kind, const void *pixels,
                     struct hk_picture_tile *out)
{
  const struct hk_picture_message m = { .height = height, .width = width, .kind = (uint8_t)kind, .scale = 1, .pixels = pixels };
  struct hk_picture *p;
  assert_int_equal(hk_picture_new(&p, rule, height, width), 0);
  for (uint32_t r = 0; r < height; r++)
    hk_picture_pixels(&m, r, hk_picture_row(p, r));
  hk_picture_tiles(p, out);
  hk_picture_free(p);
}

/* Numbers are the same bits, or both no number: which NaN it is, is not promised. */
static bool same_number(double a, double b)
{
  return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

void picture_assert_same(const struct hk_picture_tile *a, const struct hk_picture_tile *b, uint32_t n, const char *what)
{
  for (uint32_t k = 0; k < n; k++)
    if (a[k].n != b[k].n || a[k].of != b[k].of || !same_number(a[k].most, b[k].most) || !same_number(a[k].mean, b[k].mean) ||
        !same_number(a[k].spread, b[k].spread))
      fail_msg("%s: tile %u of %u: n %u and %u, greatest %a and %a, mean %a and %a, spread %a and %a", what, k, n, a[k].n, b[k].n,
               a[k].most, b[k].most, a[k].mean, b[k].mean, a[k].spread, b[k].spread);
}
