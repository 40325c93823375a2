/* See sample_lines.h. */
#include "daemon/intake/sample_lines.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LONGEST 96u /* bytes of a line, without its key and field */

void hk_sample_lines_free(struct hk_sample_lines *l)
{
  hk_buffer_free(&l->key);
}

void hk_sample_lines_escape(struct hk_buffer *out, const char *text, size_t length, const char *special)
{
  while (length > 0 && text[length - 1] == '\\')
    length--;
  char *at = hk_buffer_room(out, 2 * length);
  if (!at)
    return;
  for (size_t i = 0; i < length; i++) {
    if (text[i] && strchr(special, text[i]))
      *at++ = '\\';
    *at++ = text[i] == '\n' || text[i] == 0 ? 1 : text[i];
  }
  out->size = (size_t)(at - out->data);
}

void hk_sample_lines_name(struct hk_sample_lines *l, const char *name, size_t length)
{
  l->key.size = 0;
  l->wrong = length == 0 || name[0] == '#' || name[0] == '\\' ? "its metric has no name, or none that there can be" : NULL;
  hk_sample_lines_escape(&l->key, name, length, ", ");
}

void hk_sample_lines_label(struct hk_sample_lines *l, const char *name, size_t name_length, const char *value, size_t length)
{
  const size_t before = l->key.size;
  if (length == 0 || name_length == 0)
    return;
  hk_buffer_put(&l->key, ",", 1);
  const size_t at = l->key.size;
  hk_sample_lines_escape(&l->key, name, name_length, ",= ");
  const size_t named = l->key.size;
  hk_buffer_put(&l->key, "=", 1);
  hk_sample_lines_escape(&l->key, value, length, ",= ");
  if (named == at || l->key.size == named + 1) /* the text consists of backslashes only */
    l->key.size = before;
}

bool hk_sample_lines_refuse(struct hk_sample_lines *l, const char *why)
{
  l->n++;
  if (why) {
    if (l->faults->n < HK_SAMPLE_FAULTS)
      l->faults->fault[l->faults->n++] = (struct hk_sample_fault){ l->n, why };
    l->faults->refused++;
  }
  hk_buffer_put(l->out, "#\n", 2);
  return !l->out->failed && l->out->size <= HK_SAMPLE_LINES;
}

bool hk_sample_lines_add(struct hk_sample_lines *l, const double *count, const char *field, double value, int64_t time)
{
  const bool counts = count && isfinite(*count), valued = isfinite(value);
  if (l->wrong || (!counts && !valued))
    return hk_sample_lines_refuse(l, l->wrong);
  if (l->key.failed || l->out->size + l->key.size + LONGEST > HK_SAMPLE_LINES)
    return false;
  l->n++;
  hk_buffer_put(l->out, l->key.data, l->key.size);
  hk_buffer_put(l->out, " ", 1);
  if (counts)
    hk_buffer_print(l->out, "count=%.17g%s", *count, valued ? "," : "");
  if (valued)
    hk_buffer_print(l->out, "%s=%.17g", field, value);
  hk_buffer_print(l->out, " %" PRId64 "\n", time);
  return !l->out->failed;
}
