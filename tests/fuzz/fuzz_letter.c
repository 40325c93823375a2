/* Fuzz target: what machines of a cluster write into each other's mailboxes: letters, and the questions that they carry. What was
 * read and is written again is read as the same; of questions only in ASCII, as what is no UTF-8 is written as something else. */
#include "daemon/bridge/letter.h"
#include "daemon/server/question.h"
#include "tests/fuzz/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_question(struct hk_buffer *out, const struct hk_question *q)
{
  if (q->names)
    hk_question_write_names(out, q->from);
  else if (q->progress)
    hk_question_write_progress(out, q->silence);
  else if (q->name[0])
    hk_question_write_look(out, q->name, q->scores);
  else
    hk_question_write_list(out, &q->sensors);
}

static void require_same_list(const struct hk_web_sensors *a, const struct hk_web_sensors *b)
{
  require(strcmp(a->glob, b->glob) == 0 && strcmp(a->channel, b->channel) == 0 && strcmp(a->state, b->state) == 0);
  require(strcmp(a->alert, b->alert) == 0 && strcmp(a->sort, b->sort) == 0 && strcmp(a->after, b->after) == 0);
  require(a->limit == b->limit && a->line == b->line && a->groups == b->groups && a->lines == b->lines && b->rows);
}

static bool is_ascii(const char *text, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if ((unsigned char)text[i] > 127)
      return false;
  return true;
}

static void try_question(const char *text, size_t size)
{
  struct hk_question q, again;
  struct hk_buffer out = { 0 };
  if (hk_question_read(text, size, &q) && is_ascii(text, size)) {
    write_question(&out, &q);
    require(hk_question_read(out.data, out.size, &again));
    require(strcmp(q.name, again.name) == 0 && q.scores == again.scores && q.names == again.names && q.from == again.from);
    require(q.progress == again.progress && q.silence == again.silence && !q.sensors.glob == !again.sensors.glob);
    if (q.sensors.glob)
      require_same_list(&q.sensors, &again.sensors);
    hk_question_free(&again);
  }
  hk_question_free(&q);
  hk_buffer_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_letter letter, again;
  struct hk_buffer out = { 0 };
  unsigned version = 0;
  uint8_t *exact = malloc(size ? size : 1); /* ends where the input does, for ASan */
  memcpy(exact, data, size);
  if (hk_letter_read(exact, size, &letter, &version)) {
    require(version == HK_LETTER_VERSION && letter.body >= (const char *)exact &&
            letter.body + letter.size == (const char *)exact + size);
    hk_letter_begin(&out, &letter);
    hk_buffer_put(&out, letter.body, letter.size);
    require(hk_letter_read(out.data, out.size, &again, &version));
    require(again.kind == letter.kind && again.id == letter.id && again.status == letter.status && again.size == letter.size);
    require(strcmp(again.machine, letter.machine) == 0);
    if (letter.kind == HK_LETTER_QUESTION)
      try_question(letter.body, letter.size);
  }
  try_question((const char *)exact, size);
  hk_buffer_free(&out);
  free(exact);
  return 0;
}
