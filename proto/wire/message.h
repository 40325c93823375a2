/* Payloads of the binary protocol, one reader and one writer for each. PROTOCOL.md describes them.
 *
 * Readers return 0, or HANKEL_BAD_PAYLOAD (positive) if the payload does not have the layout of its type; the output is then
 * invalid. Strings and columns are views into the frame. Writers append one whole frame. They return 0, -ENOSPC if it does not
 * fit, or -EINVAL if a string is too long for the protocol; on error nothing is appended. */
#ifndef HK_MESSAGE_H
#define HK_MESSAGE_H

#include "proto/wire/payload.h"

/* What a client asks for: a key in WELCOME, counts in FAREWELL; a sum of these. */
enum hk_wants { HK_WANTS_KEY = 1, HK_WANTS_COUNTS = 2 };

struct hk_hello {
  struct hk_string client;
  struct hk_string token; /* length 0: none */
  uint32_t wants;         /* sum of enum hk_wants */
};
int hk_hello_write(struct hk_writer *w, uint32_t tag, const struct hk_hello *m);
int hk_hello_read(const struct hk_frame *f, struct hk_hello *m);

struct hk_welcome {
  uint64_t feed;
  uint32_t max_frame;
  struct hk_string server;
  struct hk_string key; /* key of the feed's datagrams; length 0: none */
};
int hk_welcome_write(struct hk_writer *w, uint32_t tag, const struct hk_welcome *m);
int hk_welcome_read(const struct hk_frame *f, struct hk_welcome *m);

/* REGISTER. The reader checks the layout only, not the names: an invalid name must not affect the others. */
int hk_register_write(struct hk_writer *w, uint32_t tag, uint32_t n, const struct hk_string *names);
int hk_register_read(const struct hk_frame *f, struct hk_list *names);
struct hk_string hk_name_next(struct hk_list *names);

/* REGISTERED. reason: 0 or enum hankel_refusal. */
int hk_registered_write(struct hk_writer *w, uint32_t tag, uint32_t n, const uint32_t *handles, const uint32_t *reasons);
int hk_registered_read(const struct hk_frame *f, struct hk_list *list);
void hk_registered_next(struct hk_list *list, uint32_t *handle, uint32_t *reason);

struct hk_subscription {
  uint32_t what;   /* sum of enum hankel_what */
  float min_score; /* 0..1 */
  struct hk_string glob;
  uint64_t since; /* with HANKEL_POSITIONS: position of the last known event, or HANKEL_NOW */
};
/* The reader returns HANKEL_BAD_PAYLOAD for a wrong layout; HANKEL_BAD_SUBSCRIPTION for a min_score outside [0, 1], unknown or
 * no bits in `what`, or a glob that is too long or not UTF-8. */
int hk_subscribe_write(struct hk_writer *w, uint32_t tag, const struct hk_subscription *m);
int hk_subscribe_read(const struct hk_frame *f, struct hk_subscription *m);

/* FEED: a valid name of at most HK_FEED_NAME_MAX bytes. FEED_AT: durability is of enum hankel_durability. */
struct hk_feed_at {
  uint64_t points; /* committed */
  uint32_t durability;
};
int hk_feed_write(struct hk_writer *w, uint32_t tag, struct hk_string name);
int hk_feed_read(const struct hk_frame *f, struct hk_string *name);
int hk_feed_at_write(struct hk_writer *w, uint32_t tag, const struct hk_feed_at *m);
int hk_feed_at_read(const struct hk_frame *f, struct hk_feed_at *m);

/* DONE: empty, or in reply to a SUBSCRIBE with HANKEL_POSITIONS the position of the last event that counts as known.
 * HANKEL_NOW: no event log, or an empty payload. */
int hk_done_write(struct hk_writer *w, uint32_t tag, const uint64_t *since);
int hk_done_read(const struct hk_frame *f, uint64_t *since);

/* UNSUBSCRIBE, STATUS, and FAREWELL to a client that does not ask for counts: no payload. */
int hk_empty_write(struct hk_writer *w, uint8_t type, uint32_t tag);
int hk_empty_read(const struct hk_frame *f);

/* PING and PONG (token), ACK (points), BYE (datagrams, points), GAP (results, events). */
int hk_ping_write(struct hk_writer *w, uint8_t type, uint32_t tag, uint64_t token);
int hk_ping_read(const struct hk_frame *f, uint64_t *token);
int hk_ack_write(struct hk_writer *w, uint64_t points);
int hk_ack_read(const struct hk_frame *f, uint64_t *points);
int hk_bye_write(struct hk_writer *w, uint32_t tag, uint64_t datagrams, uint64_t points);
int hk_bye_read(const struct hk_frame *f, uint64_t *datagrams, uint64_t *points);
/* FAREWELL with counts: the connection's late and rejected points. */
int hk_farewell_write(struct hk_writer *w, uint32_t tag, uint64_t late, uint64_t rejected);
int hk_farewell_read(const struct hk_frame *f, uint64_t *late, uint64_t *rejected);
int hk_gap_write(struct hk_writer *w, uint64_t results, uint64_t events);
int hk_gap_read(const struct hk_frame *f, uint64_t *results, uint64_t *events);

/* SENSORS: asks for a page of the list of sensors. The reader accepts a limit of 1 to HK_SENSORS_MAX. */
struct hk_sensors_asked {
  uint64_t after;        /* `next` of the previous page; 0: the first page */
  uint32_t limit;        /* most sensors on the page */
  struct hk_string glob; /* at most HK_GLOB_MAX bytes; empty: all */
};
int hk_sensors_write(struct hk_writer *w, uint32_t tag, const struct hk_sensors_asked *m);
int hk_sensors_read(const struct hk_frame *f, struct hk_sensors_asked *m);

/* REPORT: the payload is the text. */
int hk_report_write(struct hk_writer *w, uint32_t tag, struct hk_string json);

/* RELOADED: the rest of the payload is the text; the reader returns a view of it. */
int hk_reloaded_write(struct hk_writer *w, uint8_t type, uint32_t tag, bool taken, struct hk_string text);
int hk_reloaded_read(const struct hk_frame *f, bool *taken, struct hk_string *text);

int hk_names_write(struct hk_writer *w, uint32_t n, const uint32_t *handles, const struct hk_string *names);
int hk_names_read(const struct hk_frame *f, struct hk_list *list);
void hk_names_next(struct hk_list *list, uint32_t *handle, struct hk_string *name);

/* OPERATE. subject: a sensor's name or a glob. */
struct hk_operate {
  uint8_t what;      /* enum hankel_operation */
  uint32_t number;   /* of the alert or incident; 0: any standing alert of the sensor, or its latest incident */
  uint64_t duration; /* ns, of maintenance, at least 1 */
  struct hk_string subject, by;
};
int hk_operate_write(struct hk_writer *w, uint32_t tag, const struct hk_operate *m);
int hk_operate_read(const struct hk_frame *f, struct hk_operate *m);

struct hk_error_message {
  uint16_t code; /* enum hankel_error_code */
  uint8_t type;  /* of the frame that caused the error; 0: none */
  bool closing;
  struct hk_string message; /* the writer truncates it to 1,024 bytes */
};
/* The writer sets `closing` by the code, as PROTOCOL.md says. */
int hk_error_write(struct hk_writer *w, uint32_t tag, uint16_t code, uint8_t type, struct hk_string message);
int hk_error_read(const struct hk_frame *f, struct hk_error_message *m);
bool hk_error_closes(uint16_t code);

#endif
