/* See web_pictures.h. */
#include "daemon/web/web_pictures.h"

#include "daemon/intake/picture_board.h"
#include "daemon/web/web_reply.h"

#include <stdlib.h>

/* Writes what is known of a camera, without the last brace. */
static void put_head(struct hk_buffer *out, const struct hk_board_picture *c)
{
  const char *between = "";
  hk_buffer_print(out, "{\"camera\":");
  hk_json_string(out, c->name, strlen(c->name));
  hk_buffer_print(out, ",\"time\":%lld,\"height\":%u,\"width\":%u,\"tile\":%u,\"statistics\":[", (long long)c->time, c->height,
                  c->width, c->tile);
  for (uint32_t word = 0; word < HK_PICTURE_STATISTICS; word++)
    if (c->statistics >> word & 1) {
      hk_buffer_print(out, "%s\"%s\"", between, hk_picture_statistics[word]);
      between = ",";
    }
  hk_buffer_print(out, "]");
}

int hk_web_cameras(struct lws *wsi, struct hk_web_peer *p)
{
  struct hk_board_picture *heads = NULL;
  const uint32_t n = hk_picture_board_list(p->web->net->board, &heads);
  hk_buffer_print(&p->answer.body, "{\"cameras\":[");
  for (uint32_t i = 0; i < n; i++) {
    put_head(&p->answer.body, &heads[i]);
    hk_buffer_print(&p->answer.body, i + 1 < n ? "}," : "}");
  }
  free(heads);
  hk_buffer_print(&p->answer.body, "]}\n");
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}

int hk_web_picture(struct lws *wsi, struct hk_web_peer *p)
{
  char name[HK_NAME_MAX + 1];
  struct hk_buffer *out = &p->answer.body;
  const bool fits = hk_web_argument(wsi, "camera", name, sizeof name) == 0;
  struct hk_board_picture *c = fits ? hk_picture_board_copy(p->web->net->board, name) : NULL;
  if (!c)
    return hk_web_fault(wsi, p, 404, "no camera of this name has sent a picture since the daemon was started", NULL);
  const uint32_t cells = c->rows * c->columns;
  const size_t size = (cells + 2) / 3 * 4; /* of the text; the encoder asks for some more room */
  char *text = malloc(size + 8);
  if (!text || lws_b64_encode_string((const char *)c->cell, (int)cells, text, (int)size + 8) < 0) {
    free(text);
    free(c);
    return hk_web_fault(wsi, p, 503, "no memory", NULL);
  }
  put_head(out, c);
  hk_buffer_print(out, ",\"shown\":{\"rows\":%u,\"columns\":%u,\"low\":", c->rows, c->columns);
  hk_json_number(out, c->low, 9);
  hk_buffer_print(out, ",\"high\":");
  hk_json_number(out, c->high, 9);
  hk_buffer_print(out, ",\"cells\":\"");
  hk_buffer_put(out, text, size);
  hk_buffer_print(out, "\"}}\n");
  free(text);
  free(c);
  return hk_web_reply(wsi, p, 200, "application/json", NULL);
}
