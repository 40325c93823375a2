/* PICTURE: a picture of a camera in a frame. */
#ifndef HK_WIRE_PICTURE_H
#define HK_WIRE_PICTURE_H

#include "proto/wire/payload.h"

#define HK_PICTURE_HEAD 32u /* bytes of a payload before the name */
#define HK_PICTURE_ARRIVAL INT64_MIN
#define HK_PICTURE_PIXELS_MAX 8192u /* on a side */

/* A value is scale * pixel + offset. */
struct hk_picture_message {
  uint64_t before; /* number of the feed's points before it, itself one; without a feed 0 */
  int64_t time;    /* ns, or HK_PICTURE_ARRIVAL: when the daemon reads it */
  uint32_t height, width;
  uint8_t kind; /* enum hankel_pixel */
  float scale, offset;
  struct hk_string camera;
  const uint8_t *pixels; /* row by row; at a multiple of 4 from the frame's start */
};

/* Bytes of a pixel; 0: no such kind. */
uint32_t hk_picture_bytes(uint8_t kind);
/* Size of the whole frame; 0: it is too large. */
size_t hk_picture_size(const struct hk_picture_message *m);
/* As the writers and readers of message.h. The reader returns HANKEL_BAD_PAYLOAD for a payload without a head, or one
 * whose `before` is over INT64_MAX; and HANKEL_BAD_PICTURE with *why, a reason for people, if the rest is not valid: then
 * `camera` is valid or empty. */
int hk_picture_write(struct hk_writer *w, uint32_t tag, const struct hk_picture_message *m);
int hk_picture_read(const struct hk_frame *f, struct hk_picture_message *m, const char **why);
/* Writes the pixels of row r as floats, without scale and offset. */
void hk_picture_pixels(const struct hk_picture_message *m, uint32_t r, float *out);

#endif
