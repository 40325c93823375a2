/* See load_points.h. */
#include "tests/bench/programs/load_points.h"
#include "proto/wire/columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TIME_DIGITS 19u
#define MOVED_EVERY 1000u /* one of so many sensors has a level that moves, */
#define MOVED_TICKS 512u  /* after so many ticks, */
#define MOVED_BY 4.0f     /* by this amount */
#define OUT_OF_ORDER 7919u

void maker_tables(struct maker *m)
{
  uint64_t lot = 1;
  for (uint32_t i = 0; i < 1 << WAVE_BITS; i++)
    m->wave[i] = 50 + (float)sin(2 * M_PI / (1 << WAVE_BITS) * i);
  for (uint32_t i = 0; i < 1 << NOISE_BITS; i++) {
    double sum = 0;
    for (int k = 0; k < 4; k++) {
      lot = lot * 6364136223846793005u + 1442695040888963407u;
      sum += (double)(int64_t)lot * 0x1p-63;
    }
    m->noise[i] = (float)(0.2 * sum * sqrt(3.0 / 4.0));
  }
  for (uint32_t i = 0; i < VALUE_SPAN * VALUE_PARTS; i++) {
    char text[16];
    snprintf(text, sizeof text, "%9.6f", VALUE_LEAST + (double)i / VALUE_PARTS);
    memcpy(m->text[i], text, VALUE_TEXT);
  }
}

void scratch_open(struct scratch *s, uint32_t frame)
{
  s->handle = need(malloc(frame * sizeof *s->handle));
  s->time = need(malloc(frame * sizeof *s->time));
  s->wide = need(malloc(frame * sizeof *s->wide));
  s->value = need(malloc(frame * sizeof *s->value));
}

size_t make_room(const struct maker *m)
{
  const size_t line = m->name_length + 7 + VALUE_TEXT + 1 + TIME_DIGITS + 1;
  return m->lines ? m->frame * line
                  : hk_points_size(m->each ? HK_TIME_EACH : HK_TIME_ONE, m->each ? HK_VALUE_F64 : HK_VALUE_F32, m->frame);
}

/* The value of a sensor whose level does not move. */
static float value_of(const struct maker *m, uint32_t sensor, uint32_t tick, uint32_t lot)
{
  const uint32_t angle = sensor * 0x9e3779b9u + tick * (0x08000000u + (sensor & 1023u) * 0x4000u);
  return m->wave[angle >> (32 - WAVE_BITS)] + m->noise[(sensor + lot) & ((1u << NOISE_BITS) - 1)];
}

static uint32_t hash(uint32_t x)
{
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  return x ^ (x >> 16);
}

/* The amount by which a sensor's level has moved; at every tick the levels of some sensors change. */
static float moved(uint32_t sensor, uint32_t tick)
{
  return sensor % MOVED_EVERY == 0 && (tick + hash(sensor) % MOVED_TICKS) / MOVED_TICKS % 2 == 1 ? MOVED_BY : 0;
}

static void values_in_order(const struct maker *m, uint32_t first, uint32_t n, uint32_t tick, float *out)
{
  const uint32_t lot = hash(tick);
  for (uint32_t i = 0; i < n; i++)
    out[i] = value_of(m, first + i, tick, lot);
  for (uint32_t i = (MOVED_EVERY - first % MOVED_EVERY) % MOVED_EVERY; i < n; i += MOVED_EVERY)
    out[i] += moved(first + i, tick);
}

static size_t make_lines(const struct maker *m, uint32_t first, uint32_t n, int64_t time, const float *value, uint8_t *out)
{
  char end[32];
  char *at = (char *)out;
  snprintf(end, sizeof end, " %0*lld\n", (int)TIME_DIGITS, (long long)time);
  const char *name = m->name + (size_t)first * m->name_length;
  for (uint32_t i = 0; i < n; i++, name += m->name_length) {
    memcpy(at, name, m->name_length);
    at += m->name_length;
    memcpy(at, " value=", 7);
    memcpy(at + 7, m->text[(uint32_t)((value[i] - VALUE_LEAST) * VALUE_PARTS)], VALUE_TEXT);
    memcpy(at + 7 + VALUE_TEXT, end, TIME_DIGITS + 2);
    at += 7 + VALUE_TEXT + TIME_DIGITS + 2;
  }
  return (size_t)(at - (char *)out);
}

/* Makes points in which each has another sensor and another time. */
static void make_each(const struct maker *m, struct scratch *s, struct group *g, uint32_t n, int64_t time)
{
  const uint32_t lot = hash(g->tick);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t sensor = g->first + g->reached;
    s->handle[i] = m->handle[sensor];
    s->time[i] = time + (i & 511);
    s->wide[i] = (double)(value_of(m, sensor, g->tick, lot) + moved(sensor, g->tick));
    g->reached = (uint32_t)(((uint64_t)g->reached + OUT_OF_ORDER) % g->count);
  }
}

uint32_t make_points(const struct maker *m, struct scratch *s, struct group *g, int64_t time, struct place place, uint8_t *out,
                     size_t *size)
{
  const uint32_t left = g->count - g->next, n = left < m->frame ? left : m->frame, first = g->first + g->next;
  if (m->each)
    make_each(m, s, g, n, time);
  else
    values_in_order(m, first, n, g->tick, s->value);
  if (m->lines) {
    *size = make_lines(m, first, n, time, s->value, out);
  } else {
    struct hk_writer w = HK_WRITER(out, make_room(m));
    const struct hk_points p = { .feed = place.feed,
                                 .sequence = place.sequence,
                                 .before = place.before,
                                 .n = n,
                                 .base = time,
                                 .time_kind = m->each ? HK_TIME_EACH : HK_TIME_ONE,
                                 .value_kind = m->each ? HK_VALUE_F64 : HK_VALUE_F32,
                                 .times = s->time,
                                 .values = m->each ? (const void *)s->wide : s->value,
                                 .handles = m->each ? s->handle : m->handle + first };
    if (hk_points_write(&w, 0, &p) != 0)
      die("a frame of %u points cannot be written", n);
    *size = w.size;
  }
  g->next += n;
  if (g->next == g->count) {
    g->next = g->reached = 0;
    g->tick++;
  }
  return n;
}
