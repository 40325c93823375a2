/* Pictures: see client_picture.h. The buffer for the socket grows to the longest. */
#include "proto/client/client_picture.h"
#include "proto/wire/picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int hk_client_picture(struct hankel *h, const struct hankel_picture *p)
{
  struct hk_writer *w = &h->link.out;
  const struct hk_picture_message m = { .before = h->options.feed ? h->points.position : 0,
                                        .time = p->time,
                                        .height = p->height,
                                        .width = p->width,
                                        .kind = (uint8_t)p->kind,
                                        .scale = p->scale,
                                        .offset = p->offset,
                                        .camera = hk_string(p->camera),
                                        .pixels = p->pixels };
  const size_t size = hk_picture_size(&m);
  if (size > HK_FRAME_HEADER + (size_t)h->link.max_frame) {
    snprintf(h->error, sizeof h->error, "the picture takes %zu bytes, and the daemon takes %u at once (max_frame)",
             size - HK_FRAME_HEADER, h->link.max_frame);
    return -EMSGSIZE;
  }
  if (size > w->capacity - w->size) {
    uint8_t *larger = realloc(w->data, w->size + size);
    if (!larger)
      return -ENOMEM;
    w->data = larger;
    w->capacity = w->size + size;
  }
  const int status = p->kind == m.kind ? hk_picture_write(w, 0, &m) : -EINVAL;
  if (status < 0)
    snprintf(h->error, sizeof h->error,
             "a picture needs a name as a sensor's, 1 to 8192 rows and columns, a kind of pixels, and a scale over 0");
  h->points.pictures = status == 0 && h->options.feed;
  h->link.fresh = true;
  return status;
}
