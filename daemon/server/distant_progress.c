#include "daemon/server/distant_progress.h"

#include "daemon/server/question.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define EVERY (2 * SECOND)
#define SILENCE (HK_MAIL_SILENCE * SECOND)
#define DEAF (SILENCE / 2) /* without our own notice: then those of others may be late, too */

struct hk_distant_progress {
  void (*ready)(void *arg);
  void *arg;
  struct hk_mail_machine machine[HK_MAIL_MACHINES];
  struct hk_mail_question *question[HK_MAIL_MACHINES]; /* NULL: it has answered */
  uint32_t n;                                          /* of those */
  int64_t asked;                                       /* ns, monotonic */
  int64_t deaf;                                        /* ns, monotonic: when no notices came last; 0: never any */
  int64_t least;                                       /* ns, of the answers so far; 0: one of them says nothing */
  bool open;                                           /* answers are waited for, or to be taken */
};

struct hk_distant_progress *hk_distant_progress_new(void (*ready)(void *arg), void *arg)
{
  struct hk_distant_progress *d = calloc(1, sizeof *d);
  if (d) {
    d->ready = ready;
    d->arg = arg;
  }
  return d;
}

void hk_distant_progress_forget(struct hk_distant_progress *d)
{
  for (uint32_t i = 0; i < d->n; i++)
    hk_mail_forget(d->question[i]);
  d->n = 0;
  d->deaf = 0;
  d->open = false;
}

void hk_distant_progress_free(struct hk_distant_progress *d)
{
  if (d)
    hk_distant_progress_forget(d);
  free(d);
}

/* Whether it has long been known which machines there are: else some have not been heard of yet. */
static bool distant_hears(struct hk_distant_progress *d, struct hk_cluster *mail, uint32_t n)
{
  uint32_t us = 0;
  while (us < n && strcmp(d->machine[us].name, hk_cluster_name(mail)) != 0)
    us++;
  if (d->deaf == 0 || us == n || d->machine[us].silent > DEAF)
    d->deaf = hk_now();
  return hk_now() - d->deaf >= SILENCE;
}

void hk_distant_ask(struct hk_distant_progress *d, struct hk_cluster *mail, int64_t silence, bool wanted)
{
  const uint32_t n = hk_mail_machines(mail, false, d->machine);
  const bool hears = !mail || distant_hears(d, mail, n);
  if (d->open || !wanted || !hears || hk_now() - d->asked < EVERY)
    return;
  struct hk_buffer text = { 0 };
  hk_question_write_progress(&text, (uint32_t)(silence / 1000000));
  d->asked = hk_now();
  d->least = INT64_MAX;
  d->open = true;
  for (uint32_t i = 0; i < n; i++) {
    const struct hk_mail_machine *m = &d->machine[i];
    if (m->partitions == 0 || m->away || strcmp(m->name, hk_cluster_name(mail)) == 0)
      continue;
    d->question[d->n] = hk_mail_ask(mail, m->name, &text, d->ready, d->arg);
    if (d->question[d->n])
      d->n++;
    else
      d->least = 0;
  }
  hk_buffer_free(&text);
}

/* What an answer says, ns; 0: nothing. */
static int64_t distant_read(const struct hk_buffer *answer)
{
  cJSON *json = cJSON_ParseWithLength(answer->data, answer->size);
  const cJSON *reached = cJSON_GetObjectItemCaseSensitive(json, "reached");
  const double ms = cJSON_IsNumber(reached) ? cJSON_GetNumberValue(reached) : 0;
  const bool none = cJSON_IsNull(reached);
  cJSON_Delete(json);
  return none ? INT64_MAX : ms > -9e12 && ms < 9e12 ? (int64_t)ms * 1000000 : 0;
}

/* Takes an answer, if it is there: *least gets it. */
static bool distant_answered(struct hk_mail_question *question, int64_t *least)
{
  struct hk_buffer answer = { 0 };
  const unsigned code = hk_mail_answered(question, &answer);
  const int64_t of = code == 400 ? INT64_MAX : code == 200 && !answer.failed ? distant_read(&answer) : 0;
  if (code != 0)
    *least = *least == 0 || of == 0 ? 0 : of < *least ? of : *least;
  hk_buffer_free(&answer);
  return code != 0;
}

bool hk_distant_reached(struct hk_distant_progress *d, int64_t *reached)
{
  for (uint32_t i = 0; i < d->n;) {
    if (!distant_answered(d->question[i], &d->least)) {
      i++;
      continue;
    }
    hk_mail_forget(d->question[i]);
    d->question[i] = d->question[--d->n];
  }
  if (!d->open || d->n > 0)
    return false;
  d->open = false;
  *reached = d->least;
  return d->least != 0;
}
