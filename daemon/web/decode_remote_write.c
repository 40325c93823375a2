/* See decode_remote_write.h. */
#include "daemon/web/decode_remote_write.h"

#include "daemon/web/remote_write.pb-c.h"
#include "daemon/web/web_arena.h"

#include <errno.h>
#include <string.h>

typedef Hk__RemoteWrite__TimeSeries Series;

static bool decode_remote_write_is_name(const ProtobufCBinaryData *label)
{
  static const char name[] = "__name__";
  return label->len == sizeof name - 1 && memcmp(label->data, name, sizeof name - 1) == 0;
}

static void decode_remote_write_put_key(struct hk_sample_lines *l, const Series *series)
{
  hk_sample_lines_name(l, "", 0);
  for (size_t i = 0; i < series->n_labels; i++)
    if (decode_remote_write_is_name(&series->labels[i]->name))
      hk_sample_lines_name(l, (const char *)series->labels[i]->value.data, series->labels[i]->value.len);
  for (size_t i = 0; i < series->n_labels; i++) {
    const Hk__RemoteWrite__Label *label = series->labels[i];
    if (!decode_remote_write_is_name(&label->name))
      hk_sample_lines_label(l, (const char *)label->name.data, label->name.len, (const char *)label->value.data,
                            label->value.len);
  }
}

static bool decode_remote_write_put_series(struct hk_sample_lines *l, const Series *series)
{
  decode_remote_write_put_key(l, series);
  for (size_t i = 0; i < series->n_samples; i++)
    if (!hk_sample_lines_add(l, NULL, "value", series->samples[i]->value, series->samples[i]->timestamp))
      return false;
  return true;
}

int hk_decode_remote_write(const void *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults)
{
  struct hk_web_arena arena;
  struct hk_sample_lines lines = { .out = out, .faults = faults };
  int status = 0;
  hk_web_arena_open(&arena);
  const Hk__RemoteWrite__WriteRequest *request = hk__remote_write__write_request__unpack(&arena.allocator, size, data);
  if (!request)
    status = arena.full ? -E2BIG : -EBADMSG;
  for (size_t i = 0; request && status == 0 && i < request->n_timeseries; i++)
    if (!decode_remote_write_put_series(&lines, request->timeseries[i]))
      status = out->failed || lines.key.failed ? -ENOMEM : -E2BIG;
  hk_sample_lines_free(&lines);
  hk_web_arena_free(&arena);
  return status;
}
