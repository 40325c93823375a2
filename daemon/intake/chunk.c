/* A chunk is one piece of memory: head, columns, runs, marks. There may be as many runs as points, if alternating feeds send
 * datagrams of one point each. Pages that no point reaches are never touched. */
#include "daemon/intake/chunk.h"

#include "daemon/base/log.h"
#include "daemon/durable/named_feeds.h"

#include <stdlib.h>

struct hk_source *hk_source_new(void)
{
  struct hk_source *s = aligned_alloc(_Alignof(struct hk_source), sizeof *s);
  if (s) {
    atomic_init(&s->held, 1);
    atomic_init(&s->late, 0);
    atomic_init(&s->rejected, 0);
  }
  return s;
}

void hk_source_done(struct hk_source *s, uint64_t n)
{
  /* Release: the effects of the points come before. Acquire: the thread that frees the source comes after all others. */
  if (n > 0 && atomic_fetch_sub_explicit(&s->held, n, memory_order_acq_rel) == n)
    free(s);
}

void hk_source_close(struct hk_source *s)
{
  if (s)
    hk_source_done(s, 1);
}

struct hk_chunk *hk_chunk_new(uint32_t loop)
{
  enum { ALIGN = 64, N = HK_CHUNK_POINTS };
  const size_t head = (sizeof(struct hk_chunk) + ALIGN - 1) / ALIGN * ALIGN;
  const size_t columns = N * (sizeof(int64_t) + sizeof(double) + sizeof(uint32_t) + sizeof(struct hk_run));
  char *memory = aligned_alloc(ALIGN, head + columns + HK_CHUNK_MARKS * sizeof(struct hk_feed_mark));
  if (!memory)
    return NULL;
  struct hk_chunk *c = (struct hk_chunk *)memory;
  *c = (struct hk_chunk){ .loop = loop };
  c->time = (int64_t *)(memory + head);
  c->value = (double *)(c->time + N);
  c->slot = (uint32_t *)(c->value + N);
  c->runs = (struct hk_run *)(c->slot + N);
  c->marks = (struct hk_feed_mark *)(c->runs + N);
  return c;
}

void hk_chunk_free(struct hk_chunk *c)
{
  free(c);
}

void hk_chunk_add(struct hk_chunk *c, struct hk_source *source, uint32_t n)
{
  if (n == 0)
    return;
  hk_source_add(source, n);
  if (hk_chunk_empty(c))
    c->opened = hk_now();
  if (c->n_runs > 0 && c->runs[c->n_runs - 1].source == source)
    c->runs[c->n_runs - 1].n += n;
  else
    c->runs[c->n_runs++] = (struct hk_run){ source, n };
  c->n += n;
}

void hk_chunk_clear(struct hk_chunk *c)
{
  for (uint32_t i = 0; i < c->n_marks; i++)
    hk_feed_release(c->marks[i].feed);
  c->n = c->n_runs = c->n_marks = 0;
}

bool hk_chunk_mark(struct hk_chunk *c, struct hk_feed *feed, uint64_t upto)
{
  for (uint32_t i = c->n_marks; i > 0; i--)
    if (c->marks[i - 1].feed == feed) {
      c->marks[i - 1].upto = upto;
      return true;
    }
  if (c->n_marks == HK_CHUNK_MARKS)
    return false;
  if (hk_chunk_empty(c))
    c->opened = hk_now();
  hk_feed_hold(feed);
  c->marks[c->n_marks++] = (struct hk_feed_mark){ feed, upto };
  return true;
}
