/* What a backend says of a point: its state, and events. Plain data; window.h and alert.h have the rules that they come from. */
#ifndef HK_EVENT_H
#define HK_EVENT_H

#include <stddef.h>
#include <stdint.h>

/* State of a point in a result. The numbers are part of the wire format. */
enum hk_state {
  HK_STATE_WARMING = 0,
  HK_STATE_OK = 1,
  HK_STATE_GAP = 2,
  HK_STATE_LATE = 3,
  HK_STATE_REJECTED = 4,
  HK_STATE_PROVISIONAL = 5, /* no backend has it: see provisional/provisional.h */
};

#define HK_SKETCH_LAGS 8
#define HK_SKETCH_NUMBERS (HK_SKETCH_LAGS + 4)

/* A sketch of a segment: see sketch.h. */
struct hk_sketch {
  int8_t of[HK_SKETCH_NUMBERS]; /* all 0: unknown */
};

enum hk_event_kind {
  HK_EVENT_RAISED = 1,
  HK_EVENT_CORRECTED = 2, /* the change instant of a raised alert was estimated more accurately */
  HK_EVENT_CLEARED = 3,
  HK_EVENT_STALE = 4, /* notices: a sensor became silent, or is back */
  HK_EVENT_BACK = 5,
  HK_EVENT_IDLE = 6,         /* silent for longer than the sweep's idle limit: may be evicted; not published */
  HK_EVENT_FLAPPING = 7,     /* only from the daemon, not from backends: too many alerts, further ones are suppressed; */
  HK_EVENT_ACKNOWLEDGED = 8, /* an operator acknowledged an alert */
};

/* The question that an alert answers. */
enum hk_channel {
  HK_CHANNEL_NONE = 0,    /* a notice */
  HK_CHANNEL_SCORE = 1,   /* ika, svd: does the newest span differ from the one before it? */
  HK_CHANNEL_CHANGE = 2,  /* graph: does the behaviour differ from all that is resident since the last change? */
  HK_CHANNEL_SHIFT = 3,   /* shift: has the level moved, or was there a short event? */
  HK_CHANNEL_GROUP = 4,   /* of the daemon: have the sensors of a machine changed, jointly? */
  HK_CHANNEL_NOVELTY = 5, /* novelty: is the behaviour of the sensor new? */
  HK_CHANNEL_LIMIT = 6,   /* limit: will the trend of the sensor reach a limit soon? */
};

/* Details of a raised or corrected event of the channel `novelty`. The event's levels are the expected and the observed one, and
 * spread_before their usual distance: of a value; of a mean of `reach` points; for a shape 0 and the rms difference to the
 * nearest. All zero: no details. */
struct hk_novelty_note {
  int64_t nearest;   /* ns: time of the nearest earlier behaviour */
  int64_t oldest;    /* ns: beginning of the data it was compared with */
  double low, high;  /* range of the resident values, in the sensor's units */
  uint32_t compared; /* points: number of values; for context and shape, number of points back to the oldest */
  uint16_t reach;    /* points */
  uint8_t channel;   /* 1 value, 2 context, 3 shape */
  uint8_t unused;
};

#define HK_NOTE_LIMIT 4 /* `kind` of the note of a limit; 1 to 3 are the `channel` of the notes of novelty */

/* Details of a raised or corrected event of the channel `limit`: when the limit is reached. The event's levels are those of the
 * trend's line, at the beginning of its window and now; the spreads are the distance of blocks from the line. Has the size of the
 * other note and, up to `kind`, its layout. All zero: no details. */
struct hk_limit_note {
  int64_t earliest; /* ns: when the limit is reached by the steeper quartile of the slopes, */
  int64_t latest;   /* by the gentler quartile, INT64_MAX: never, */
  int64_t reached;  /* and by their median */
  double limit;     /* the limit to which the trend leads */
  float slope;      /* units per second; < 0: it falls */
  uint16_t blocks;  /* number of blocks, of 24, in the trend */
  uint8_t kind;     /* HK_NOTE_LIMIT */
  uint8_t unused;
};

#define HK_NOTE_AT offsetof(struct hk_limit_note, kind) /* in both notes: whether the note has details, and which note it is */
#ifdef __cplusplus
static_assert(HK_NOTE_AT == offsetof(struct hk_novelty_note, channel), "one of two notes is told by its kind");
static_assert(sizeof(struct hk_limit_note) == sizeof(struct hk_novelty_note), "and both take the same room");
#else
_Static_assert(HK_NOTE_AT == offsetof(struct hk_novelty_note, channel), "one of two notes is told by its kind");
_Static_assert(sizeof(struct hk_limit_note) == sizeof(struct hk_novelty_note), "and both take the same room");
#endif

/* An event (raised, corrected, cleared) or a notice (stale, back). Plain data. */
struct hk_event {
  uint32_t index; /* index in its batch of the point that caused it; UINT32_MAX for a notice */
  uint32_t slot;
  uint32_t number; /* n of the id `sensor:n`, counted from 1 for each sensor; 0 for a notice */
  uint8_t kind;    /* enum hk_event_kind */
  uint8_t channel; /* enum hk_channel */
  uint8_t marks;   /* for the daemon; backends set none */
  uint8_t unused;
  int64_t time;    /* ns: time of the point; for a notice, of the sensor's last point */
  int64_t from;    /* ns: start of the interval [T-2w+2, T] on which the alert was raised; 0 for a notice */
  int64_t instant; /* ns: estimate of the change instant; 0 for a notice */
  float score;     /* raised: the score; corrected and cleared: the highest score since raised */
  float margin;    /* the same of evidence / threshold: at least about 1 */
  double before;   /* level (mean of the values) before and after the change, in the sensor's units */
  double after;
  float spread_before; /* standard deviation about these */
  float spread_after;
  uint32_t held; /* for the daemon: alerts of the sensor that were suppressed before this one */
  /* For the daemon, for the channel `change`: the most similar earlier segment. */
  uint32_t similar;     /* number of the alert with which that segment began; 0: none, it is the first known one */
  int64_t similar_from; /* ns: its beginning */
  float likeness;       /* 0..1, increases with the similarity; 0: no earlier segment is similar */
  /* Raised and corrected events of the channel `change`: sketches of the ended segment and of the new one. */
  struct hk_sketch sketch_before, sketch_after;
  float severity; /* 0..HK_SEVERITY_MAX: rarity of such an alert, see severity.h; the highest since it was raised. 0: unknown */
  union {         /* one of them, by the channel */
    struct hk_novelty_note novelty;
    struct hk_limit_note limit;
  };
};

#endif
