/* See incident_board.h. */
#include "daemon/server/incident_board.h"

#include "proto/hankel.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct hk_incident_board {
  pthread_mutex_t lock; /* protects everything */
  uint32_t n;           /* number of open incidents */
  struct hk_buffer standing;
  struct overs {
    struct over {
      uint64_t incident, order;    /* order: counts all that are closed */
      struct hk_buffer text, said; /* an object of JSON but for its end; what was said of it, a member */
    } of[HK_BOARD_OVER];           /* ring */
    uint64_t n;                    /* number so far, */
    uint64_t shown;                /* and when the open incidents were last rewritten: the others still stand there */
  } over[2];                       /* withheld ones, which may be very many; reported ones */
};

struct hk_incident_board *hk_board_new(void)
{
  struct hk_incident_board *b = calloc(1, sizeof *b);
  if (b)
    pthread_mutex_init(&b->lock, NULL);
  return b;
}

void hk_board_free(struct hk_incident_board *b)
{
  if (!b)
    return;
  hk_buffer_free(&b->standing);
  for (uint32_t i = 0; i < 2 * HK_BOARD_OVER; i++) {
    struct over *one = &b->over[i / HK_BOARD_OVER].of[i % HK_BOARD_OVER];
    hk_buffer_free(&one->text);
    hk_buffer_free(&one->said);
  }
  pthread_mutex_destroy(&b->lock);
  free(b);
}

/* The mark of an incident, as a member. */
static void write_said(struct hk_buffer *out, const struct hk_incident_fleet *fleets, uint32_t n, uint64_t incident)
{
  const struct hk_feedback_said *said = NULL;
  for (uint32_t i = 0; !said && i < n; i++)
    said = hk_feedback_of(fleets[i].feedback, incident);
  if (!said)
    return;
  hk_buffer_print(out, ",\"feedback\":{\"kind\":\"%s\",\"text\":", hk_feedback_word(said->kind));
  hk_json_string(out, said->text.data, said->text.length);
  hk_buffer_put(out, "}", 1);
}

/* The beginning of an object of JSON. */
static void write_head(struct hk_buffer *out, bool stands, bool told, double severity, struct hk_string sentence)
{
  hk_buffer_print(out, "{\"stands\":%s,\"told\":%s,\"level\":\"%s\",\"sentence\":", stands ? "true" : "false",
                  told ? "true" : "false", hankel_severity_name((float)severity));
  hk_json_string(out, sentence.data, sentence.length);
}

/* An object of JSON, without its end. */
static void write_one(struct hk_buffer *out, const struct hk_incident_news *news, bool stands)
{
  const struct hk_incident *i = news->incident;
  struct hk_buffer text = { 0 };
  hk_incident_what(&text, news);
  write_head(out, stands, i->told, i->S, (struct hk_string){ text.data, text.size });
  hk_buffer_print(out, ",\"about\":");
  hk_incident_json(out, news);
  out->failed |= text.failed;
  hk_buffer_free(&text);
}

/* Takes over the text. */
static void put_over(struct hk_incident_board *b, uint64_t incident, bool told, const struct hk_buffer *text)
{
  pthread_mutex_lock(&b->lock);
  struct overs *ring = &b->over[told];
  struct over *place = &ring->of[ring->n % HK_BOARD_OVER];
  place->order = b->over[false].n + b->over[true].n;
  ring->n++;
  hk_buffer_free(&place->text);
  place->text = *text;
  place->said.size = 0;
  place->incident = incident;
  pthread_mutex_unlock(&b->lock);
}

void hk_board_over(struct hk_incident_board *b, const struct hk_incident_news *news)
{
  struct hk_buffer text = { 0 };
  write_one(&text, news, false);
  put_over(b, news->incident->id, news->incident->told, &text);
}

/* What a line of the log says behind the rank. */
static struct hk_string sentence_of(struct hk_string line)
{
  const char *end = line.data + line.length, *rank = memmem(line.data, line.length, "  R ", 4);
  const char *what = rank ? memmem(rank + 4, (size_t)(end - rank - 4), "  ", 2) : NULL;
  return what ? (struct hk_string){ what + 2, (size_t)(end - what - 2) } : line;
}

void hk_board_recall(struct hk_incident_board *b, const struct hk_logged_incident *i)
{
  struct hk_buffer text = { 0 };
  if (i->kind != HANKEL_INCIDENT_CLOSED && i->kind != HANKEL_INCIDENT_WITHHELD)
    return;
  write_head(&text, false, i->told, i->severity, sentence_of(i->text));
  hk_buffer_print(&text, ",\"about\":");
  hk_buffer_put(&text, i->about.data, i->about.length);
  put_over(b, i->id, i->told, &text);
}

/* The open incidents of highest rank. */
struct gravest {
  const struct hk_incident *of[HK_BOARD_STANDING];
  const struct hk_incident_fleet *fleet[HK_BOARD_STANDING]; /* of each, */
  const struct hk_incident_fleet *now;                      /* and of those that are being picked */
  uint32_t n;
};

static void pick(void *arg, const struct hk_incident *i)
{
  struct gravest *g = arg;
  uint32_t at = g->n < HK_BOARD_STANDING ? g->n++ : HK_BOARD_STANDING;
  while (at > 0 && g->of[at - 1]->R < i->R) {
    if (at < HK_BOARD_STANDING) {
      g->of[at] = g->of[at - 1];
      g->fleet[at] = g->fleet[at - 1];
    }
    at--;
  }
  if (at < HK_BOARD_STANDING) {
    g->of[at] = i;
    g->fleet[at] = g->now;
  }
}

void hk_board_stand(struct hk_incident_board *b, const struct hk_incident_fleet *fleets, uint32_t n)
{
  struct gravest g = { .n = 0 };
  struct hk_buffer text = { 0 };
  uint32_t open = 0;
  for (uint32_t i = 0; i < n; i++) {
    g.now = &fleets[i];
    hk_incidents_each(fleets[i].all, pick, &g);
    open += hk_incidents_count(fleets[i].all).open;
  }
  for (uint32_t k = 0; k < g.n; k++) {
    const enum hk_incident_decision decision = g.of[k]->told ? HK_INCIDENT_UPDATE : HK_INCIDENT_CLOSED;
    const struct hk_incident_fleet *f = g.fleet[k];
    const struct hk_incident_news news = { f->all, g.of[k], NULL, f->day, g.of[k]->last, 0, decision, f->section };
    if (k > 0)
      hk_buffer_put(&text, ",", 1);
    write_one(&text, &news, true);
    write_said(&text, fleets, n, g.of[k]->id);
    hk_buffer_put(&text, "}", 1);
  }
  pthread_mutex_lock(&b->lock);
  const struct hk_buffer before = b->standing;
  b->standing = text;
  b->n = open;
  b->over[false].shown = b->over[false].n;
  b->over[true].shown = b->over[true].n;
  for (uint32_t k = 0; k < 2 * HK_BOARD_OVER; k++) {
    struct over *one = &b->over[k / HK_BOARD_OVER].of[k % HK_BOARD_OVER];
    one->said.size = 0;
    if (k % HK_BOARD_OVER < b->over[k / HK_BOARD_OVER].n)
      write_said(&one->said, fleets, n, one->incident);
  }
  pthread_mutex_unlock(&b->lock);
  struct hk_buffer old = before;
  hk_buffer_free(&old);
}

static void incident_board_put(struct hk_buffer *out, const struct hk_buffer *text)
{
  out->failed |= text->failed;
  if (text->size > 0)
    hk_buffer_put(out, text->data, text->size);
}

void hk_board_read(struct hk_incident_board *b, struct hk_buffer *out)
{
  pthread_mutex_lock(&b->lock);
  hk_buffer_print(out, "{\"made\":true,\"standing\":%" PRIu32 ",\"incidents\":[", b->n);
  incident_board_put(out, &b->standing);
  hk_buffer_print(out, "],\"over\":[");
  uint64_t left[2], first[2];
  for (uint32_t k = 0; k < 2; k++) {
    left[k] = b->over[k].shown;
    first[k] = b->over[k].n > HK_BOARD_OVER ? b->over[k].n - HK_BOARD_OVER : 0;
  }
  for (bool any = false;; any = true) { /* newest first */
    const struct over *last[2];
    for (uint32_t k = 0; k < 2; k++)
      last[k] = left[k] > first[k] ? &b->over[k].of[(left[k] - 1) % HK_BOARD_OVER] : NULL;
    if (!last[0] && !last[1])
      break;
    const bool told = !last[0] || (last[1] && last[1]->order > last[0]->order);
    const struct over *over = last[told];
    left[told]--;
    if (any)
      hk_buffer_put(out, ",", 1);
    incident_board_put(out, &over->text);
    incident_board_put(out, &over->said);
    hk_buffer_put(out, "}", 1);
  }
  pthread_mutex_unlock(&b->lock);
  hk_buffer_print(out, "]}\n");
}
