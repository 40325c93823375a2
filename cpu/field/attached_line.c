/* Lines of fields: see attached_line.h. */
#include "cpu/field/attached_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_field_line_keep(struct hk_field_line *l, const void *state, size_t size)
{
  l->state = malloc(size + 1);
  if (!l->state)
    return -ENOMEM;
  memcpy(l->state, state, size);
  l->size = size;
  return 0;
}

int hk_field_line_attach(struct hk_field_line *l, const struct hk_focus_rule *rule, uint32_t n, const double *position,
                         char *error, size_t size)
{
  struct hk_field_line made = { 0 };
  int status = hk_focus_new(&made.is, rule, n, position, error, size);
  if (status != 0)
    return status;
  made.size = hk_focus_state_size(made.is);
  made.value = calloc(n, sizeof *made.value);
  made.member = malloc(n * sizeof *made.member);
  if (!made.value || !made.member) {
    snprintf(error, size, "out of memory");
    status = -ENOMEM;
  } else if (l->size > 0 && (status = hk_focus_read(made.is, l->state, l->size)) != 0) {
    snprintf(error, size, "what was saved is of another line");
  }
  for (uint32_t i = 0; made.member && i < n; i++)
    made.member[i] = HK_FOCUS_NONE;
  if (status == 0) {
    hk_field_line_close(l);
    *l = made;
  } else {
    hk_field_line_close(&made);
  }
  return status;
}

void hk_field_line_begin(struct hk_field_line *l)
{
  for (uint32_t j = 0; l->is && j < l->is->f.n; j++) {
    l->value[j] = NAN;
    l->member[j] = HK_FOCUS_NONE;
  }
}

bool hk_field_line_began(const struct hk_field_line *l, int64_t row, int64_t interval, int64_t *time)
{
  const int64_t least = INT64_MIN / interval + 1;
  row -= hk_focus_delay(&l->is->f);
  *time = row >= least ? row * interval : 0;
  return row >= least;
}

void hk_field_line_write(const struct hk_field_line *l, void *state)
{
  if (l->is)
    hk_focus_write(l->is, state);
  else if (l->size > 0)
    memcpy(state, l->state, l->size);
}

void hk_field_line_close(struct hk_field_line *l)
{
  hk_focus_free(l->is);
  free(l->value);
  free(l->member);
  free(l->state);
  *l = (struct hk_field_line){ 0 };
}
