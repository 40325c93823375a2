/* Payloads of the binary protocol, one reader and one writer for each. PROTOCOL.md describes them.
 *
 * Readers: 0, or HANKEL_BAD_PAYLOAD (positive) when the payload has not the layout of its type; nothing is then valid.
 * Strings and columns that they give are views into the frame. Writers append one whole frame: 0, or -ENOSPC when it does not
 * fit (nothing was appended), or -EINVAL when a string is too long for the protocol. */
#ifndef HK_MESSAGE_H
#define HK_MESSAGE_H

#include "proto/wire/payload.h"

/* What a client wants to be told: a key in WELCOME, counts in FAREWELL; added up. */
enum hk_wants { HK_WANTS_KEY = 1, HK_WANTS_COUNTS = 2 };

struct hk_hello {
  struct hk_string client;
  struct hk_string token; /* of length 0: none */
  uint32_t wants;         /* enum hk_wants */
};
int hk_hello_write(struct hk_writer *w, uint32_t tag, const struct hk_hello *m);
int hk_hello_read(const struct hk_frame *f, struct hk_hello *m);

struct hk_welcome {
  uint64_t feed;
  uint32_t max_frame;
  struct hk_string server;
  struct hk_string key; /* of the feed's datagrams; of length 0: none */
};
int hk_welcome_write(struct hk_writer *w, uint32_t tag, const struct hk_welcome *m);
int hk_welcome_read(const struct hk_frame *f, struct hk_welcome *m);

/* REGISTER. The reader checks the layout, not whether names are valid: one bad name must not harm the others. */
int hk_register_write(struct hk_writer *w, uint32_t tag, uint32_t n, const struct hk_string *names);
int hk_register_read(const struct hk_frame *f, struct hk_list *names);
struct hk_string hk_name_next(struct hk_list *names);

/* REGISTERED. reason: 0 or enum hankel_refusal. */
int hk_registered_write(struct hk_writer *w, uint32_t tag, uint32_t n, const uint32_t *handles, const uint32_t *reasons);
int hk_registered_read(const struct hk_frame *f, struct hk_list *list);
void hk_registered_next(struct hk_list *list, uint32_t *handle, uint32_t *reason);

enum hk_time_kind { HK_TIME_EACH = 0, HK_TIME_ONE = 1, HK_TIME_EVEN = 2, HK_TIME_STEPS = 3, HK_TIME_ARRIVAL = 4 };
enum hk_value_kind { HK_VALUE_F64 = 0, HK_VALUE_F32 = 1 };

/* POINTS. Columns are not aligned in a frame that was read: go through the functions below. */
struct hk_points {
  uint64_t feed, sequence, before; /* 0 over TCP */
  uint32_t n;
  uint8_t time_kind;   /* enum hk_time_kind */
  uint8_t value_kind;  /* enum hk_value_kind */
  int64_t base;        /* ns: ONE, EVEN, STEPS */
  int64_t step;        /* ns: EVEN the interval, STEPS the unit */
  const void *times;   /* int64_t, EACH; else NULL */
  const void *steps;   /* uint32_t, STEPS; else NULL */
  const void *values;  /* double or float, as value_kind says */
  const void *handles; /* uint32_t */
};
int hk_points_write(struct hk_writer *w, uint32_t tag, const struct hk_points *p);
int hk_points_read(const struct hk_frame *f, struct hk_points *p);
/* Bytes of a whole frame with n points of these kinds. */
size_t hk_points_size(uint8_t time_kind, uint8_t value_kind, uint32_t n);
/* Copies a column of points first..first+count-1 out. arrival: ns since the epoch, for HK_TIME_ARRIVAL. */
void hk_points_handles(const struct hk_points *p, uint32_t first, uint32_t count, uint32_t *handle);
void hk_points_times(const struct hk_points *p, uint32_t first, uint32_t count, int64_t arrival, int64_t *time);
void hk_points_values(const struct hk_points *p, uint32_t first, uint32_t count, double *value);

struct hk_subscription {
  uint32_t what;   /* enum hankel_what, added up */
  float min_score; /* 0..1 */
  struct hk_string glob;
  uint64_t since; /* with HANKEL_POSITIONS: position of the last event that is known, or HANKEL_NOW */
};
/* Reader: HANKEL_BAD_PAYLOAD for a wrong layout; HANKEL_BAD_SUBSCRIPTION for a min_score that is no number in [0, 1], unknown or
 * no bits in what, or a glob that is too long or not UTF-8. */
int hk_subscribe_write(struct hk_writer *w, uint32_t tag, const struct hk_subscription *m);
int hk_subscribe_read(const struct hk_frame *f, struct hk_subscription *m);

/* FEED: a valid name of at most HK_FEED_NAME_MAX bytes. FEED_AT: durability as enum hankel_durability. */
struct hk_feed_at {
  uint64_t points; /* committed */
  uint32_t durability;
};
int hk_feed_write(struct hk_writer *w, uint32_t tag, struct hk_string name);
int hk_feed_read(const struct hk_frame *f, struct hk_string *name);
int hk_feed_at_write(struct hk_writer *w, uint32_t tag, const struct hk_feed_at *m);
int hk_feed_at_read(const struct hk_frame *f, struct hk_feed_at *m);

/* DONE: nothing, or, to a SUBSCRIBE with HANKEL_POSITIONS, the position of the last event that is taken to be known; HANKEL_NOW:
 * there is no event log, or nothing. */
int hk_done_write(struct hk_writer *w, uint32_t tag, const uint64_t *since);
int hk_done_read(const struct hk_frame *f, uint64_t *since);

/* UNSUBSCRIBE, STATUS, FAREWELL to a client that wants no counts: no payload. */
int hk_empty_write(struct hk_writer *w, uint8_t type, uint32_t tag);
int hk_empty_read(const struct hk_frame *f);

/* PING and PONG (token), ACK (points), BYE (datagrams, points), GAP (results, events). */
int hk_ping_write(struct hk_writer *w, uint8_t type, uint32_t tag, uint64_t token);
int hk_ping_read(const struct hk_frame *f, uint64_t *token);
int hk_ack_write(struct hk_writer *w, uint64_t points);
int hk_ack_read(const struct hk_frame *f, uint64_t *points);
int hk_bye_write(struct hk_writer *w, uint32_t tag, uint64_t datagrams, uint64_t points);
int hk_bye_read(const struct hk_frame *f, uint64_t *datagrams, uint64_t *points);
/* FAREWELL with counts: points of the connection that were late, and rejected. */
int hk_farewell_write(struct hk_writer *w, uint32_t tag, uint64_t late, uint64_t rejected);
int hk_farewell_read(const struct hk_frame *f, uint64_t *late, uint64_t *rejected);
int hk_gap_write(struct hk_writer *w, uint64_t results, uint64_t events);
int hk_gap_read(const struct hk_frame *f, uint64_t *results, uint64_t *events);

/* SENSORS: a part of the list of sensors. Reader: a limit of 1 to HK_SENSORS_MAX. */
struct hk_sensors_asked {
  uint64_t after;        /* `next` of the part before; 0: from the first on */
  uint32_t limit;        /* sensors, at most */
  struct hk_string glob; /* at most HK_GLOB_MAX bytes; empty: all */
};
int hk_sensors_write(struct hk_writer *w, uint32_t tag, const struct hk_sensors_asked *m);
int hk_sensors_read(const struct hk_frame *f, struct hk_sensors_asked *m);

/* REPORT: the payload is the text. */
int hk_report_write(struct hk_writer *w, uint32_t tag, struct hk_string json);

/* RELOADED: the rest of the payload is the text, of which a view is given. */
int hk_reloaded_write(struct hk_writer *w, uint8_t type, uint32_t tag, bool taken, struct hk_string text);
int hk_reloaded_read(const struct hk_frame *f, bool *taken, struct hk_string *text);

int hk_names_write(struct hk_writer *w, uint32_t n, const uint32_t *handles, const struct hk_string *names);
int hk_names_read(const struct hk_frame *f, struct hk_list *list);
void hk_names_next(struct hk_list *list, uint32_t *handle, struct hk_string *name);

/* SCORES, n at least 1. value, sequence NULL: not sent along. The writer chooses how times are given, and leaves the states out
 * when all are HANKEL_OK. */
int hk_scores_write(struct hk_writer *w, uint32_t n, const int64_t *time, const double *value, const uint64_t *sequence,
                    const uint32_t *handle, const float *score, const uint8_t *state);
struct hk_scores { /* columns, not aligned: memcpy from them */
  uint32_t n;
  uint8_t time_kind;     /* enum hk_time_kind, but for ARRIVAL */
  int64_t base;          /* ns: ONE, EVEN, STEPS */
  int64_t step;          /* ns: EVEN the interval, STEPS the unit */
  const void *times;     /* int64_t, EACH; else NULL */
  const void *values;    /* double; NULL: not sent along */
  const void *sequences; /* uint64_t; NULL: not sent along */
  const void *handles;   /* uint32_t */
  const void *scores;    /* float */
  const void *steps;     /* uint32_t, STEPS; else NULL */
  const void *states;    /* uint8_t; NULL: all are HANKEL_OK */
};
int hk_scores_read(const struct hk_frame *f, struct hk_scores *s);
/* The times as a plain column of s->n. */
void hk_scores_times(const struct hk_scores *s, int64_t *time);
/* Bytes of a whole frame: of one that was read; and of n results at most. */
size_t hk_scores_size(const struct hk_scores *s);
size_t hk_scores_most(uint32_t n, unsigned wide);

/* OPERATE. subject: a sensor's name, or a glob. */
struct hk_operate {
  uint8_t what;      /* enum hankel_operation */
  uint32_t number;   /* of the alert; 0: of whichever stands */
  uint64_t duration; /* ns, of maintenance that begins; at least 1 */
  struct hk_string subject, by;
};
int hk_operate_write(struct hk_writer *w, uint32_t tag, const struct hk_operate *m);
int hk_operate_read(const struct hk_frame *f, struct hk_operate *m);

struct hk_error_message {
  uint16_t code; /* enum hankel_error_code */
  uint8_t type;  /* of the frame concerned, 0 = none */
  bool closing;
  struct hk_string message; /* cut to 1,024 bytes by the writer */
};
/* `closing` is set by the writer from the code, as PROTOCOL.md says. */
int hk_error_write(struct hk_writer *w, uint32_t tag, uint16_t code, uint8_t type, struct hk_string message);
int hk_error_read(const struct hk_frame *f, struct hk_error_message *m);
bool hk_error_closes(uint16_t code);

#endif
