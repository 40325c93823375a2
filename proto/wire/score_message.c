#include "proto/wire/score_message.h"

#include <errno.h>
#include <string.h>

int hk_score_message_write(struct hk_writer *w, uint64_t writer, uint32_t n, const struct hk_string *names,
                           const struct hk_score_columns *c)
{
  const size_t before = w->size;
  uint32_t handles[HK_SCORE_MESSAGE_MAX];
  if (n > HK_SCORE_MESSAGE_MAX || c->n > HK_SCORE_MESSAGE_MAX)
    return -EINVAL;
  for (uint32_t i = 0; i < n; i++)
    handles[i] = i;
  int status = hk_ping_write(w, HK_PING, 0, writer);
  if (status == 0)
    status = hk_names_write(w, n, handles, names);
  if (status == 0)
    status = hk_scores_write(w, c->n, c->time, c->value, c->sequence, c->number, c->score, c->state);
  if (status != 0)
    w->size = before;
  return status;
}

static int score_message_bad(const char **why, const char *words)
{
  *why = words;
  return -EBADMSG;
}

/* Reads the frame at the start of data, which must be of this type. */
static int score_message_next(const uint8_t **data, size_t *size, uint8_t type, struct hk_frame *f)
{
  const int code = hk_frame_read(*data, *size, HK_FRAME_MAX, f);
  if (code != HK_FRAME_WHOLE || f->type != type)
    return code == HANKEL_BAD_CHECKSUM ? code : HANKEL_BAD_PAYLOAD;
  *data += hk_frame_size(f);
  *size -= hk_frame_size(f);
  return 0;
}

/* Whether the names are numbered from 0, and all results are of these and have a state. */
static bool score_message_fits(const struct hk_score_message *m)
{
  struct hk_list names = m->names;
  const struct hk_scores *s = &m->scores;
  for (uint32_t i = 0; i < m->names.n; i++) {
    struct hk_string name;
    uint32_t handle;
    hk_names_next(&names, &handle, &name);
    if (handle != i)
      return false;
  }
  for (uint32_t i = 0; i < s->n; i++) {
    uint32_t handle;
    memcpy(&handle, (const uint8_t *)s->handles + i * sizeof handle, sizeof handle);
    if (handle >= m->names.n || (s->states && ((const uint8_t *)s->states)[i] > HANKEL_PROVISIONAL_SCORE))
      return false;
  }
  return true;
}

int hk_score_message_read(const void *data, size_t size, struct hk_score_message *out, const char **why)
{
  const uint8_t *at = data;
  struct hk_frame ping, names, scores;
  int code = score_message_next(&at, &size, HK_PING, &ping);
  if (code == 0)
    code = score_message_next(&at, &size, HK_NAMES, &names);
  if (code == 0)
    code = score_message_next(&at, &size, HK_SCORES, &scores);
  if (code == HANKEL_BAD_CHECKSUM)
    return score_message_bad(why, "it was damaged: a checksum does not match");
  if (code != 0 || size > 0)
    return score_message_bad(why, "it is not a PING, a NAMES and a SCORES frame");
  if (hk_ping_read(&ping, &out->writer) != 0 || hk_names_read(&names, &out->names) != 0 ||
      hk_scores_read(&scores, &out->scores) != 0)
    return score_message_bad(why, "a frame has not the layout of its type");
  if (out->names.n > HK_SCORE_MESSAGE_MAX || out->scores.n > HK_SCORE_MESSAGE_MAX)
    return score_message_bad(why, "it has over 1,024 names or results");
  if (!out->scores.values || !score_message_fits(out))
    return score_message_bad(why, "it has no values, or a result is of no name that it has");
  return 0;
}
