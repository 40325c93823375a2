/* See web_body.h. */
#include "daemon/web/web_body.h"

#include "cpu/library.h"
#include "cpu/sonames.h"
#include "daemon/web/web_reply.h"

#include <libdeflate.h>
#ifdef HK_HAVE_REMOTE_WRITE
#include <snappy-c.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GUESS 8u     /* decompressed size over compressed size, if nothing better is known */
#define LEAST 65536u /* bytes to unpack into */

long long hk_web_body_length(struct lws *wsi)
{
  char text[24];
  if (lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH) == 0)
    return -1;
  if (lws_hdr_copy(wsi, text, sizeof text, WSI_TOKEN_HTTP_CONTENT_LENGTH) <= 0 || strspn(text, "0123456789") != strlen(text))
    return 1LL << 62;
  return atoll(text);
}

bool hk_web_body_reserve(struct hk_web_peer *p, size_t size)
{
  struct hk_web *web = p->web;
  if (web->bodies - p->request.reserved + size > HK_WEB_BODIES)
    return false;
  web->bodies = web->bodies - p->request.reserved + size;
  p->request.reserved = size;
  return true;
}

void hk_web_body_drop(struct hk_web_peer *p)
{
  hk_buffer_free(&p->request.body);
  (void)hk_web_body_reserve(p, 0);
}

int hk_web_body_full(struct lws *wsi, struct hk_web_peer *p)
{
  hk_count(&p->web->counters.refused, 1);
  return hk_web_fault(wsi, p, 429, "other requests use all the memory for points; try again", &hk_web_retry);
}

static int too_large(struct lws *wsi, struct hk_web_peer *p)
{
  return hk_web_fault(wsi, p, 413, "the body has over 16 MiB: send fewer points at a time", NULL);
}

bool hk_web_body_begin(struct lws *wsi, struct hk_web_peer *p, int *status)
{
  const long long length = hk_web_body_length(wsi);
  char coding[32] = "";
  const bool coded = lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0;
  p->request.in_chunks = coded && lws_hdr_copy(wsi, coding, sizeof coding, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0 &&
                         strcasecmp(coding, "chunked") == 0;
  p->request.chunked = (struct hk_chunked){ 0 };
  if (coded && (length >= 0 || !p->request.in_chunks)) /* otherwise the end of the body would be ambiguous */
    *status = hk_web_fault(wsi, p, 400, "the body needs either Content-Length or Transfer-Encoding: chunked", NULL);
  else if (length < 0 && !p->request.in_chunks)
    *status = hk_web_fault(wsi, p, 411, "the request has no Content-Length", NULL);
  else if (length > (long long)HK_WEB_BODY)
    *status = too_large(wsi, p);
  else if (!hk_web_body_reserve(p, length > 0 ? (size_t)length : 0))
    *status = hk_web_body_full(wsi, p);
  else
    return true;
  return false;
}

bool hk_web_body_came(struct lws *wsi, struct hk_web_peer *p, const char *data, size_t size, int *status)
{
  *status = 0;
  if (!p->request.in_chunks) {
    hk_buffer_put(&p->request.body, data, size);
    *status = p->request.body.failed || p->request.body.size > p->request.reserved ? -1 : 0; /* more than it said */
    return false;
  }
  const int whole = hk_chunked_take(&p->request.chunked, data, size, &p->request.body);
  if (p->request.body.failed) {
    *status = -1;
    return false;
  }
  if (whole < 0)
    *status = hk_web_fault(wsi, p, 400, "the body's chunks are invalid (Transfer-Encoding: chunked)", NULL);
  else if (p->request.body.size > HK_WEB_BODY)
    *status = too_large(wsi, p);
  else if (p->request.body.size > p->request.reserved && !hk_web_body_reserve(p, p->request.body.size))
    *status = hk_web_body_full(wsi, p);
  else
    return whole > 0;
  p->request.route = NULL;
  return false;
}

static const char large_unpacked[] = "the body has over 32 MiB decompressed: send fewer points at a time";

static void take_unpacked(struct hk_web_peer *p, const struct hk_buffer *out)
{
  hk_buffer_free(&p->request.body);
  p->request.body = *out;
  (void)hk_web_body_reserve(p, out->size); /* less than there was */
}

/* Decompresses all members of a gzip body into out, at most `room` bytes. */
static enum libdeflate_result gunzip(struct libdeflate_decompressor *d, const struct hk_buffer *in, struct hk_buffer *out,
                                     size_t room)
{
  size_t used = 0;
  out->size = 0;
  do {
    size_t took = 0, gave = 0;
    const enum libdeflate_result result =
        libdeflate_gzip_decompress_ex(d, in->data + used, in->size - used, out->data + out->size, room - out->size, &took, &gave);
    if (result != LIBDEFLATE_SUCCESS)
      return result;
    used += took;
    out->size += gave;
  } while (used < in->size);
  return LIBDEFLATE_SUCCESS;
}

/* First guess of the size: the last bytes of a gzip with one member, mod 2^32. They may be wrong. */
static size_t first_guess(const struct hk_buffer *in)
{
  uint32_t told = 0;
  if (in->size >= 4)
    for (size_t i = 0; i < 4; i++)
      told |= (uint32_t)(uint8_t)in->data[in->size - 4 + i] << 8 * i;
  const size_t plausible = told <= in->size * GUESS * GUESS ? told : in->size * GUESS;
  return plausible < LEAST ? LEAST : plausible > HK_WEB_UNPACKED ? HK_WEB_UNPACKED : plausible;
}

/* 0, or the status of an answer, and its text. */
static unsigned unpack_gzip(struct hk_web_peer *p, const char **why)
{
  struct hk_buffer out = { 0 };
  struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
  enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
  const size_t packed = p->request.body.size;
  unsigned code = 0;
  *why = "no memory";
  for (size_t room = first_guess(&p->request.body); code == 0 && result == LIBDEFLATE_INSUFFICIENT_SPACE; room *= 2) {
    room = room < HK_WEB_UNPACKED ? room : HK_WEB_UNPACKED;
    hk_buffer_free(&out);
    if (!hk_web_body_reserve(p, packed + room))
      code = 429;
    else if (!d || !hk_buffer_room(&out, room))
      code = 503;
    else
      result = gunzip(d, &p->request.body, &out, room);
    if (room == HK_WEB_UNPACKED)
      break;
  }
  libdeflate_free_decompressor(d);
  if (code == 0 && result != LIBDEFLATE_SUCCESS) {
    code = result == LIBDEFLATE_INSUFFICIENT_SPACE ? 413 : 400;
    *why = code == 413 ? large_unpacked : "the body is incomplete or not gzip";
  }
  if (code != 0) {
    hk_buffer_free(&out);
    return code;
  }
  take_unpacked(p, &out);
  return 0;
}

#ifdef HK_HAVE_REMOTE_WRITE
#define CODINGS "gzip or snappy"
#define SNAPPY_CALLS(_)                                                                                                          \
  _(snappy_, uncompressed_length)                                                                                                \
  _(snappy_, uncompress)

static struct {
  SNAPPY_CALLS(HK_LIBRARY_CALL)
} snappy;
static struct hk_library snappy_library = HK_LIBRARY(HK_SONAME_SNAPPY, snappy, SNAPPY_CALLS);

static unsigned unpack_snappy(struct hk_web_peer *p, const char **why)
{
  struct hk_buffer out = { 0 };
  size_t size = 0;
  if (hk_library_load(&snappy_library, NULL, 0) != 0) {
    *why = "snappy needs " HK_SONAME_SNAPPY ", which cannot be loaded here";
    return 503; /* Prometheus keeps its points until the library is there; after 415 it would drop them */
  }
  *why = "the body is incomplete or not in snappy's block format";
  if (snappy.uncompressed_length(p->request.body.data, p->request.body.size, &size) != SNAPPY_OK)
    return 400;
  if (size > HK_WEB_UNPACKED) {
    *why = large_unpacked;
    return 413;
  }
  if (!hk_web_body_reserve(p, p->request.body.size + size))
    return 429;
  if (!hk_buffer_room(&out, size)) {
    *why = "no memory";
    return 503;
  }
  if (snappy.uncompress(p->request.body.data, p->request.body.size, out.data, &size) != SNAPPY_OK) {
    hk_buffer_free(&out);
    return 400;
  }
  out.size = size;
  take_unpacked(p, &out);
  return 0;
}
#else
#define CODINGS "gzip"

static unsigned unpack_snappy(struct hk_web_peer *p, const char **why)
{
  (void)p;
  *why = "this hankeld is built without libsnappy";
  return 415;
}
#endif

bool hk_web_body_unpack(struct lws *wsi, struct hk_web_peer *p, int *status)
{
  char coding[32] = "";
  const char *why = NULL;
  unsigned code = 0;
  const int length = lws_hdr_copy(wsi, coding, sizeof coding, WSI_TOKEN_HTTP_CONTENT_ENCODING);
  if (length >= 0 && strcasecmp(coding, "gzip") == 0) {
    code = p->request.body.size > 0 ? unpack_gzip(p, &why) : 0; /* Python's client of InfluxDB 1 sends it without a body, too */
  } else if (length >= 0 && strcasecmp(coding, "snappy") == 0) {
    code = unpack_snappy(p, &why);
  } else if (length != 0 && strcasecmp(coding, "identity") != 0) {
    code = 415;
    why = "the body may be packed with " CODINGS " (Content-Encoding), and with nothing else";
  }
  if (code != 0)
    *status = code == 429 ? hk_web_body_full(wsi, p) : hk_web_fault(wsi, p, code, why, code == 503 ? &hk_web_retry : NULL);
  return code == 0;
}
