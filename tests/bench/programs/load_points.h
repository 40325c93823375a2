/* The points that the load generator sends, made at over 100 M points/s a core, so that the generator is not the bottleneck.
 *
 * Every sensor has its own signal: a sine whose phase and frequency depend on its number, and noise, both from tables that fit
 * into the first-level cache, so a value costs two look-ups. The level of one sensor in a thousand moves up and back every 512
 * ticks, each sensor's at other ticks. Frames are made by the library's own writer (proto/wire/message.h), and lines
 * from prepared constant parts: 47 bytes with a prefix of one letter.
 *
 * Thread: a maker is only read once it is made; a group is its thread's. */
#ifndef LOAD_POINTS_H
#define LOAD_POINTS_H

#include "tests/bench/programs/load_peer.h"

#define WAVE_BITS 12
#define NOISE_BITS 14
#define VALUE_LEAST 40
#define VALUE_SPAN 20
#define VALUE_PARTS 256 /* that a line's value is told apart by */
#define VALUE_TEXT 9

struct maker {
  uint32_t frame;         /* points of a frame, at most */
  bool lines;             /* line protocol; else frames */
  bool each;              /* a time for each point, f64, sensors out of order; else one time, f32, in order */
  const uint32_t *handle; /* by sensor; frames */
  const char *name;       /* by sensor, name_length bytes each; lines */
  uint32_t name_length;
  float wave[1 << WAVE_BITS], noise[1 << NOISE_BITS];
  char text[VALUE_SPAN * VALUE_PARTS][VALUE_TEXT];
};
/* Sets up the tables; the other fields are the caller's. */
void maker_tables(struct maker *m);

/* The sensors first..first+count-1, which one connection feeds: tick after tick, each of them once. */
struct group {
  uint32_t first, count;
  uint32_t next;    /* of the tick: how many sensors have had it */
  uint32_t tick;    /* ticks that are complete */
  uint32_t reached; /* out of order: the sensor that is next */
};

/* Place of a frame in a UDP feed; all 0 over TCP. */
struct place {
  uint64_t feed, sequence, before;
};

/* Columns of one frame being made; a thread's. */
struct scratch {
  uint32_t *handle;
  int64_t *time;
  double *wide;
  float *value;
};
void scratch_open(struct scratch *s, uint32_t frame);

/* Bytes that the next frame, or as many lines, take at most. */
size_t make_room(const struct maker *m);
/* Writes the group's next frame, or lines, with this time and moves on. Returns the points in it; *size: the bytes. */
uint32_t make_points(const struct maker *m, struct scratch *s, struct group *g, int64_t time, struct place place, uint8_t *out,
                     size_t *size);

#endif
