/* PICTURE: see picture.h. */
#include "proto/wire/picture.h"

#include <errno.h>
#include <math.h>

static const uint8_t bytes_of[] = {
  [HANKEL_PIXEL_U8] = 1, [HANKEL_PIXEL_U16] = 2, [HANKEL_PIXEL_F16] = 2, [HANKEL_PIXEL_F32] = 4
};

uint32_t hk_picture_bytes(uint8_t kind)
{
  return kind < sizeof bytes_of ? bytes_of[kind] : 0;
}

/* Bytes of the name, and of the zeros behind it. */
static size_t name_room(size_t length)
{
  return (length + 3) / 4 * 4;
}

size_t hk_picture_size(const struct hk_picture_message *m)
{
  const uint64_t pixels = (uint64_t)m->height * m->width * hk_picture_bytes(m->kind);
  const uint64_t size = HK_FRAME_HEADER + HK_PICTURE_HEAD + name_room(m->camera.length) + pixels;
  return size <= HK_FRAME_HEADER + (uint64_t)HK_FRAME_MAX_MOST ? (size_t)size : 0;
}

/* Why the numbers of a head cannot be; NULL: they can. */
static const char *wrong_head(const struct hk_picture_message *m, uint8_t zero)
{
  if (m->height == 0 || m->width == 0 || m->height > HK_PICTURE_PIXELS_MAX || m->width > HK_PICTURE_PIXELS_MAX)
    return "its height and width are not from 1 to 8192 pixels";
  if (hk_picture_bytes(m->kind) == 0 || zero != 0)
    return "there is no such kind of pixels: 0 is u8, 1 u16, 2 f16, 3 f32";
  if (!(m->scale > 0) || !isfinite(m->scale) || !isfinite(m->offset))
    return "its scale is not a number over 0, or its offset is none";
  return NULL;
}

int hk_picture_write(struct hk_writer *w, uint32_t tag, const struct hk_picture_message *m)
{
  static const uint8_t zeros[4];
  if (m->before > INT64_MAX || wrong_head(m, 0) || !hk_name_valid(m->camera.data, m->camera.length) || hk_picture_size(m) == 0)
    return -EINVAL;
  const size_t place = hk_frame_begin(w, HK_PICTURE, tag);
  hk_put_u64(w, m->before);
  hk_put_i64(w, m->time);
  hk_put_u16(w, (uint16_t)m->height);
  hk_put_u16(w, (uint16_t)m->width);
  hk_put_u8(w, m->kind);
  hk_put_u8(w, 0);
  hk_put_u16(w, (uint16_t)m->camera.length);
  hk_put_f32(w, m->scale);
  hk_put_f32(w, m->offset);
  hk_put(w, m->camera.data, m->camera.length);
  hk_put(w, zeros, name_room(m->camera.length) - m->camera.length);
  hk_put(w, m->pixels, (size_t)m->height * m->width * hk_picture_bytes(m->kind));
  return hk_frame_end(w, place);
}

int hk_picture_read(const struct hk_frame *f, struct hk_picture_message *m, const char **why)
{
  struct hk_reader r = hk_reader(f);
  *m = (struct hk_picture_message){ 0 };
  m->before = hk_get_u64(&r);
  m->time = hk_get_i64(&r);
  m->height = hk_get_u16(&r);
  m->width = hk_get_u16(&r);
  m->kind = hk_get_u8(&r);
  const uint8_t zero = hk_get_u8(&r);
  const uint16_t length = hk_get_u16(&r);
  m->scale = hk_get_f32(&r);
  m->offset = hk_get_f32(&r);
  if (r.bad || m->before > INT64_MAX)
    return HANKEL_BAD_PAYLOAD;
  const char *name = (const char *)hk_take(&r, length);
  const uint8_t *rest = hk_take(&r, name_room(length) - length);
  *why = "its name is not that of a sensor: 1 to 512 bytes of UTF-8 without control characters";
  if (r.bad || !hk_name_valid(name, length))
    return HANKEL_BAD_PICTURE;
  m->camera = (struct hk_string){ name, length };
  *why = wrong_head(m, zero);
  for (size_t i = 0; i < name_room(length) - length && !*why; i++)
    *why = rest[i] != 0 ? "there is something between its name and its pixels" : NULL;
  if (!*why && r.size != (size_t)m->height * m->width * hk_picture_bytes(m->kind))
    *why = "its pixels are more or fewer than its height and width say";
  m->pixels = r.data;
  return *why ? HANKEL_BAD_PICTURE : 0;
}

/* Widens a half, by IEEE 754. */
static float widen_half(uint16_t half)
{
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
  const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
  float x;
  if (exponent == 0) /* zero, or below 2^-14 */
    return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
  memcpy(&x, &bits, sizeof x);
  return x;
}

void hk_picture_pixels(const struct hk_picture_message *m, uint32_t r, float *out)
{
  const uint32_t w = m->width;
  const uint8_t *from = m->pixels + (size_t)r * w * hk_picture_bytes(m->kind);
  uint16_t x;
  switch ((enum hankel_pixel)m->kind) {
  case HANKEL_PIXEL_U8:
    for (uint32_t i = 0; i < w; i++)
      out[i] = from[i];
    return;
  case HANKEL_PIXEL_U16:
    for (uint32_t i = 0; i < w; i++) {
      memcpy(&x, from + 2 * (size_t)i, sizeof x);
      out[i] = x;
    }
    return;
  case HANKEL_PIXEL_F16:
    for (uint32_t i = 0; i < w; i++) {
      memcpy(&x, from + 2 * (size_t)i, sizeof x);
      out[i] = widen_half(x);
    }
    return;
  case HANKEL_PIXEL_F32:
    memcpy(out, from, (size_t)w * sizeof *out);
    return;
  }
}
