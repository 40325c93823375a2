/* libhankel: client of hankeld.
 *
 *   struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
 *   hankel *h = hankel_open(&options);
 *   int sensor = hankel_sensor(h, "machine temperature");
 *   hankel_send(h, (uint32_t)sensor, time_ns, value); ...        buffered
 *   hankel_sync(h, 5000);                                        the daemon has taken over all points
 *   hankel_close(h);
 *
 * Blocking use: hankel_wait, hankel_flush, hankel_sync, hankel_status and the other requests wait, at most for their timeout.
 * Non-blocking use: poll hankel_fd for hankel_events, at most for hankel_timeout, then call hankel_step(h, 0). Everything that
 * arrives is delivered through the callbacks, which only hankel_step and the waiting calls invoke.
 *
 * When the connection breaks, the library reconnects with growing pauses, registers all sensors and subscribes again, and
 * reports through `disconnected` how many points may not have arrived. Memory is bounded: points that cannot be sent stay in a
 * buffer of fixed size; when it is full, hankel_send returns -EAGAIN.
 *
 * With the option `feed` no point is in doubt: points stay in the buffer until the daemon acknowledges them, and
 * unacknowledged ones are sent again after a break, so that each counts once. hankel_feed_position returns the number of
 * acknowledged points; a restarted program continues from there. A subscription with HANKEL_POSITIONS continues after the last
 * event that it delivered, so that no event is lost or repeated, even over restarts of a daemon that keeps its state.
 *
 * Errors: 0 (or a count) means success, a negative value is an errno, and hankel_error describes the last error in words.
 * Thread: one handle, one thread; different handles are independent. Callbacks must not close the handle. PROTOCOL.md
 * describes the protocol itself. */
#ifndef HANKEL_H
#define HANKEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* State of a point, given with its result. */
enum hankel_state {
  HANKEL_WARMING = 0, /* the window is not full yet */
  HANKEL_OK = 1,
  HANKEL_GAP = 2,               /* too much of the span was interpolated: raises no alert */
  HANKEL_LATE = 3,              /* not later than the sensor's last point: ignored */
  HANKEL_REJECTED = 4,          /* not finite or out of range: ignored */
  HANKEL_PROVISIONAL_SCORE = 5, /* of a smaller window, while the wanted one is not full */
};

enum hankel_event_kind {
  HANKEL_RAISED = 1,
  HANKEL_CORRECTED = 2, /* the instant of a raised alert is now known more precisely */
  HANKEL_CLEARED = 3,
  HANKEL_STALE = 4, /* notices: a sensor has gone silent, or has returned */
  HANKEL_BACK = 5,
  HANKEL_FLAPPING = 7,     /* with HANKEL_DETAILS: the sensor raises too many alerts; further ones are held back */
  HANKEL_ACKNOWLEDGED = 8, /* with HANKEL_DETAILS: a person has acknowledged a standing alert */
};

/* Change of an incident. An incident joins alerts of several sensors, or of several channels of one sensor, that have one
 * cause. */
enum hankel_incident_kind {
  HANKEL_INCIDENT_TOLD = 1,     /* reported for the first time: it fits into the budget of messages */
  HANKEL_INCIDENT_UPDATE = 2,   /* a reported incident has escalated: severity higher by 2, or three times as many sensors */
  HANKEL_INCIDENT_MERGED = 3,   /* found to be part of another incident */
  HANKEL_INCIDENT_CLOSED = 4,   /* a reported incident is over */
  HANKEL_INCIDENT_WITHHELD = 5, /* an incident is over that was never reported */
  HANKEL_INCIDENT_EXPECTED = 6, /* a person marked it as expected, */
  HANKEL_INCIDENT_FALSE = 7,    /* or as a false alarm: its sensors are silenced for a week, unless its rank is higher by 1, */
  HANKEL_INCIDENT_UNDONE = 8,   /* or took that mark back */
};

/* The question that an alert answers. */
enum hankel_channel {
  HANKEL_NO_CHANNEL = 0,
  HANKEL_SCORE = 1,       /* ika, svd: does the newest span look unlike the span before it? */
  HANKEL_CHANGE = 2,      /* graph: does the sensor behave differently from all data kept since its last change? */
  HANKEL_SHIFT = 3,       /* shift: has the level moved, or was there a short event? */
  HANKEL_GROUP = 4,       /* have the sensors of a machine, taken together, changed? */
  HANKEL_NOVELTY = 5,     /* novelty: does the sensor show what it has not shown before? */
  HANKEL_NEARS_LIMIT = 6, /* limit: will the trend reach a limit soon? */
};

/* Marks of an event; a sum of these. */
enum hankel_mark {
  HANKEL_MAINTENANCE = 1, /* the alert was raised in a maintenance window of its sensor */
  HANKEL_SECONDARY = 2,   /* in a field of sensors: another sensor, `by`, is the cause */
  HANKEL_PROVISIONAL = 4, /* raised by a small window while the wanted one was not full: most are false */
  /* in a field of sensors along a line: a change that travels, which began at the position `after`, near the sensor `by`; its
   * speed is spread_after, negative if it travels towards lower positions */
  HANKEL_TRAVELS = 8,
};

/* What to subscribe to; a sum of these. */
enum hankel_what {
  HANKEL_SCORES = 1,   /* results with a score */
  HANKEL_UNSCORED = 2, /* results without one */
  HANKEL_EVENTS = 4,
  HANKEL_NOTICES = 8,
  HANKEL_VALUES = 16,    /* adds the points' values to results */
  HANKEL_POSITIONS = 32, /* adds position and sequence to events: see hankel_subscribe_since */
  HANKEL_SEQUENCES = 64, /* adds the points' sequences to results */
  HANKEL_DETAILS = 128,  /* adds all details to events; also HANKEL_FLAPPING and HANKEL_ACKNOWLEDGED */
  HANKEL_NOTES = 256,    /* adds notes to events of the channels novelty and limit: struct hankel_novelty, hankel_limit */
  /* changes of incidents, and events with the incident that they belong to; such events come some seconds late if the daemon
   * makes incidents */
  HANKEL_INCIDENTS = 512,
};

/* Requests of operators. */
enum hankel_operation {
  HANKEL_ACKNOWLEDGE = 1,
  HANKEL_BEGIN_MAINTENANCE = 2,
  HANKEL_END_MAINTENANCE = 3,
  HANKEL_EXPECTED = 4,
  HANKEL_FALSE = 5,
  HANKEL_UNDO = 6,
  HANKEL_DRAIN = 7,   /* of a machine of a cluster: its partitions go to others, and it takes none */
  HANKEL_UNDRAIN = 8, /* that is over */
  HANKEL_MOVE = 9     /* it is to have a partition */
};

/* Data that survives a restart of the daemon. */
enum hankel_durability {
  HANKEL_NOT_DURABLE = 0,
  HANKEL_SNAPSHOTS = 1, /* everything up to the last snapshot */
  HANKEL_JOURNALED = 2, /* everything that was acknowledged */
};

#define HANKEL_NOW UINT64_MAX         /* as a position: that of the newest event */
#define HANKEL_NOBODY_KNOWS INT64_MAX /* a gap's events, or more: the requested position is beyond the log */

/* Reason why the server refused a name. */
enum hankel_refusal {
  HANKEL_BAD_NAME = 1,
  HANKEL_FULL = 2,
  HANKEL_NO_DETECTOR = 3,
  HANKEL_RESERVED = 4,
  HANKEL_QUOTA = 5, /* the peer has reached its limit of sensors */
};

/* Codes of error frames; PROTOCOL.md has the table. */
enum hankel_error_code {
  HANKEL_BAD_MAGIC = 1,
  HANKEL_BAD_VERSION = 2,
  HANKEL_TOO_LONG = 3,
  HANKEL_BAD_CHECKSUM = 4,
  HANKEL_BAD_TYPE = 5,
  HANKEL_BAD_PAYLOAD = 6,
  HANKEL_OUT_OF_ORDER = 7,
  HANKEL_UNKNOWN_HANDLE = 8,
  HANKEL_BAD_SUBSCRIPTION = 9,
  HANKEL_LIMIT = 10,
  HANKEL_TIMEOUT = 11,
  HANKEL_TOO_SLOW = 12,
  HANKEL_SHUTTING_DOWN = 13,
  HANKEL_INTERNAL = 14,
  HANKEL_UNAUTHORIZED = 15,
  HANKEL_FORBIDDEN = 16,
  HANKEL_BAD_PICTURE = 17,
};

/* How pixels of pictures are given: little-endian; f16 and f32 as in IEEE 754. */
enum hankel_pixel { HANKEL_PIXEL_U8 = 0, HANKEL_PIXEL_U16 = 1, HANKEL_PIXEL_F16 = 2, HANKEL_PIXEL_F32 = 3 };

typedef struct hankel hankel;

/* A batch of results: columns of length n. Valid during the callback only. */
struct hankel_scores {
  uint32_t n;
  const char *const *name;  /* of the sensor, NUL-terminated; NULL with the option `handles` */
  const int64_t *time;      /* ns */
  const double *value;      /* NULL unless subscribed with HANKEL_VALUES */
  const float *score;       /* NaN: no score was due */
  const uint8_t *state;     /* enum hankel_state */
  const uint32_t *handle;   /* the daemon's number of the sensor: see hankel_name */
  const uint64_t *sequence; /* number of the point within its sensor, from 1, never reused; NULL unless subscribed with
                               HANKEL_SEQUENCES, and if the daemon keeps no state */
};

/* What is new about a sensor. */
enum hankel_novelty_kind {
  HANKEL_NO_NOVELTY = 0,      /* no note: all other members are 0 */
  HANKEL_NOVELTY_VALUE = 1,   /* a new value */
  HANKEL_NOVELTY_CONTEXT = 2, /* a new state: mean of the last `reach` points */
  HANKEL_NOVELTY_SHAPE = 3,   /* a new shape of the last `reach` points */
};

/* Note of an event of the channel novelty. The event's levels hold what was expected and observed: `before` is the nearest
 * earlier value or mean, `after` the present one (for a shape: 0, and its rms difference from the nearest earlier shape);
 * `spread_before` is the tolerance: how far the two usually lie apart at most. */
struct hankel_novelty {
  uint8_t kind;      /* enum hankel_novelty_kind */
  uint16_t reach;    /* points */
  uint32_t compared; /* number of points that it was compared with, without the newest */
  int64_t nearest;   /* ns: time of the nearest earlier value, state or shape */
  int64_t oldest;    /* ns: start of the data that it was compared with */
  double low, high;  /* range of the values in memory */
};

/* Note of an event of the channel limit: when the trend of the last window reaches the limit. The event's `before` and `after`
 * are values of the trend line at the window's start and now; the spreads tell how far block medians lie from the line. */
struct hankel_limit {
  uint16_t blocks;  /* blocks, of 24, that the trend is computed from; 0: no note, and all other members are 0 */
  float slope;      /* units per second; negative: falling */
  double limit;     /* the limit, upper or lower, that the trend approaches */
  int64_t earliest; /* ns: when the limit is reached, by the steeper quartile of the slopes, */
  int64_t reached;  /* by their median; a time not after the event's: already reached, */
  int64_t latest;   /* and by the gentler quartile; INT64_MAX: never */
};

/* Levels of severity: below HANKEL_WARNING a notice, for people who look anyway; a warning deserves a look today; a severe
 * alert should call somebody. */
#define HANKEL_WARNING 2.5f
#define HANKEL_SEVERE 3.5f

struct hankel_event {
  const char *name;
  uint32_t number; /* `name:number` identifies the alert; 0 for a notice */
  uint8_t kind;    /* enum hankel_event_kind */
  int64_t time;    /* ns: of the point; for a notice, of the sensor's last point */
  int64_t from;    /* ns: start of the interval that raised the alert */
  int64_t instant; /* ns: estimated time of the change */
  float score;     /* raised: the score; corrected, cleared: the highest score since */
  double before;   /* levels before and after the change */
  double after;
  uint64_t position; /* in the daemon's event log; 0: not logged, or subscribed without HANKEL_POSITIONS */
  uint64_t sequence; /* number of the event within its sensor, from 1; 0 as for position */
  /* 0..40: how rare an alert this grave is, on one scale for all channels; the highest since the alert was raised. If nothing
   * has changed, at most 2 x 10^-severity of the blocks of 40 points have such an alert. 0: unknown. severity and all members
   * below: 0 or "" unless subscribed with HANKEL_DETAILS */
  float severity;
  float margin;        /* ratio of the statistic to the threshold, over which the alert was raised */
  float spread_before; /* standard deviation around the levels */
  float spread_after;
  uint8_t channel; /* enum hankel_channel */
  uint8_t marks;   /* sum of enum hankel_mark */
  uint32_t held;   /* raised: number of the sensor's alerts held back since the last reported one */
  /* Channel change: the earlier segment of the sensor that is most like the new one. likeness 0: none is like it. */
  float likeness;       /* 0..1 */
  uint32_t similar;     /* number of the alert with which that segment began; 0: it is the first known segment */
  int64_t similar_from; /* ns: start of that segment */
  const char *by; /* acknowledged: by whom; HANKEL_SECONDARY: the sensor that is the cause; HANKEL_TRAVELS: the nearest one */
  struct hankel_novelty novelty; /* all 0 unless subscribed with HANKEL_NOTES */
  uint64_t incident;             /* incident of the event; 0: none, or not subscribed with HANKEL_INCIDENTS */
  struct hankel_limit limit;     /* all 0 unless subscribed with HANKEL_NOTES */
};

/* A change of an incident. */
struct hankel_incident {
  uint64_t id;
  uint8_t kind;    /* enum hankel_incident_kind */
  uint8_t told;    /* 1: it was reported at least once */
  uint32_t count;  /* sensors in it */
  uint64_t into;   /* merged: the incident that absorbs it; else 0 */
  int64_t time;    /* ns, in the data's time: of this change, */
  int64_t since;   /* and of the first event */
  double rank;     /* decides whether it is reported: the highest severity, plus an amount for how many related sensors it has */
  double severity; /* the highest of its events, 0..40 */
  uint64_t position; /* in the daemon's event log; 0: subscribed without HANKEL_POSITIONS */
  const char *text;  /* a sentence for people */
  const char *about; /* JSON object: its sensors, the first of them, and more; PROTOCOL.md, INCIDENT */
};

/* Any callback may be NULL. arg: from the options. */
struct hankel_callbacks {
  void (*scores)(void *arg, const struct hankel_scores *scores);
  void (*event)(void *arg, const struct hankel_event *event);
  /* So many results and events are missing here: the subscriber read too slowly, or the daemon's log no longer has the events.
   * events >= HANKEL_NOBODY_KNOWS: the log ends before the requested position, so it is a different log. */
  void (*gap)(void *arg, uint64_t results, uint64_t events);
  void (*connected)(void *arg, const char *server);
  /* The connection ended. in_doubt: number of points sent since the daemon's last confirmation; some may not have arrived. */
  void (*disconnected)(void *arg, uint64_t in_doubt, const char *reason);
  /* The server refused a sensor (enum hankel_refusal): the library drops and counts its points. */
  void (*refused)(void *arg, const char *name, int refusal);
  /* The server sent an error frame that does not end the connection (enum hankel_error_code). */
  void (*error)(void *arg, int code, const char *message);
  /* With HANKEL_INCIDENTS: an incident changed, one of whose sensors matches the subscription. */
  void (*incident)(void *arg, const struct hankel_incident *incident);
};

/* TLS and the client's credentials. The files are read at each connection, so their contents may change. If the daemon rejects
 * the credentials, or its certificate is invalid, the library stops reconnecting (-EACCES), unless a connection succeeded
 * before. */
struct hankel_security {
  int tls;                 /* 1: use TLS; the daemon's certificate must be valid for the host of the address */
  const char *ca;          /* PEM file of certificate authorities; NULL: those of the system */
  const char *certificate; /* PEM file of the client's certificate, followed by its chain; NULL: none */
  const char *key;         /* PEM file of its private key; NULL: in the certificate's file */
  const char *token;       /* NULL: none */
  const char *token_file;  /* file whose first line is the token; NULL: none */
  int mac;                 /* 1: datagrams carry a keyed checksum, which a listener with `mac = yes` requires; needs tls */
  int token_in_clear;      /* 1: allows sending the token in clear text beyond loopback, where anybody on the path can read it.
                              Otherwise the library does not send it there and stops reconnecting (-EPERM) */
};

struct hankel_options {
  const char *address; /* HOST:PORT, [V6]:PORT or PORT of a binary listener over TCP */
  const char *udp;     /* likewise, of a UDP listener: points are sent as datagrams. NULL: over TCP */
  const char *client;  /* name of this program in the daemon's log */
  uint32_t buffer;     /* capacity of the send buffer, points; 1024..1048576 */
  int once;            /* 1: do not reconnect when the connection breaks */
  int handles;         /* 1: results come without names; one core then receives 100 M results per second and more */
  struct hankel_callbacks callbacks;
  void *arg;
  struct hankel_security security;
  const char *feed; /* name of the feed of all points, 1..255 bytes, else as a sensor's; over TCP only. NULL: none */
  int counts;       /* 1: hankel_finish obtains the numbers of late and rejected points */
};
#define HANKEL_OPTIONS_DEFAULT                                                                                                   \
  {                                                                                                                              \
    "127.0.0.1:7410", NULL, "libhankel", 65536, 0, 0, { 0 }, NULL, { 0 }, NULL, 0                                                \
  }

/* Creates a handle and starts to connect. Copies the strings. Does not block on a numeric address or a local name. Returns
 * NULL if out of memory; any other error is returned by the first call that waits or steps. */
hankel *hankel_open(const struct hankel_options *options);

/* Closes at once; unflushed points are lost. NULL is allowed. */
void hankel_close(hankel *h);

/* The last error in words, "" if there was none. Valid until the next call. */
const char *hankel_error(const hankel *h);

/* Returns 1 while connected and greeted by the daemon, else 0. */
int hankel_connected(const hankel *h);

/* For poll loops: the descriptor (-1 while there is none; it changes on reconnection), the poll events wanted (POLLIN,
 * POLLOUT), and the ms until hankel_step must be called even without events (-1: never). */
int hankel_fd(const hankel *h);
short hankel_events(const hankel *h);
int hankel_timeout(const hankel *h);

/* Waits for the network up to `timeout` ms (0: not at all, -1: until something happens), then reads, writes and invokes
 * callbacks. Returns 0 or a negative errno: with `once` if the connection is over, else only if out of memory. */
int hankel_step(hankel *h, int timeout);

/* Waits until connected. Returns 0, -ETIMEDOUT, or the error that prevents connecting. */
int hankel_wait(hankel *h, int timeout);

/* Returns the number of a sensor, >= 0, constant for the life of the handle; a new name is registered with the next points.
 * -EINVAL: invalid name (valid: 1..512 bytes of UTF-8, no control characters); -ENOMEM. */
int hankel_sensor(hankel *h, const char *name);

/* Puts points into the buffer, which is sent when full, by hankel_flush, and by hankel_step. time: ns since 1970. -EAGAIN: the
 * buffer is full and nothing was taken; call hankel_flush or hankel_step, then repeat. -EINVAL: no such sensor.
 * hankel_send_columns takes as many points as fit and returns their number. */
int hankel_send(hankel *h, uint32_t sensor, int64_t time, double value);
int64_t hankel_send_columns(hankel *h, uint32_t n, const uint32_t *sensor, const int64_t *time, const double *value);

/* Waits until the buffer is empty and the socket has taken all bytes. Returns 0, -ETIMEDOUT, or the connection's error. */
int hankel_flush(hankel *h, int timeout);

/* A picture of a camera. A value is scale * pixel + offset; pixels of f16 and f32 that are not finite are missing. */
struct hankel_picture {
  const char *camera;     /* name, as a sensor's */
  int64_t time;           /* ns since 1970; INT64_MIN: when the daemon reads it */
  uint16_t height, width; /* 1..8192 */
  int kind;               /* enum hankel_pixel */
  float scale, offset;    /* scale > 0 */
  const void *pixels;     /* row by row without gaps, little-endian */
};
/* Sends a picture behind all points, over TCP, and waits until the socket has taken it; with the option `feed`, in which it
 * counts as one point, until the daemon has acknowledged it. The daemon makes points of its tiles, as its section [pictures NAME]
 * says; the callback `error` is told why it cannot (HANKEL_BAD_PICTURE). Returns 0; -EINVAL: it cannot be sent; -EMSGSIZE: it is
 * longer than the daemon's max_frame; -ECONNRESET: the connection broke, and it may not have arrived: send it again, with the
 * same time it counts once; -ETIMEDOUT, ... */
int hankel_picture(hankel *h, const struct hankel_picture *picture, int timeout);

/* With the option `feed`: number of points, from the feed's start, that the daemon has acknowledged. After the first
 * connection this is the number that the daemon had before; the first point to send is the next one. */
uint64_t hankel_feed_position(const hankel *h);
/* What an acknowledgement guarantees: enum hankel_durability of the daemon. */
int hankel_durability(const hankel *h);

/* Flushes, then waits until the daemon confirms that it has taken over all points (over UDP: all that arrived; of a feed: has
 * acknowledged all), and that a new subscription is in force. -ECONNRESET: the connection broke meanwhile with points in
 * doubt; the library reconnects. */
int hankel_sync(hankel *h, int timeout);

/* Subscribes to sensors whose names match the glob (`*` and `?`; "" = all), replacing an earlier subscription; what = 0 ends
 * it. Reconnections keep it. what: sum of enum hankel_what. Returns 0 or -EINVAL. */
int hankel_subscribe(hankel *h, const char *glob, float min_score, uint32_t what);
/* As hankel_subscribe with HANKEL_POSITIONS, starting with the first event after the position `since`: that of the last known
 * event, 0 for all events in the log, or HANKEL_NOW for new events only. Events that the log no longer has are reported as a
 * gap. */
int hankel_subscribe_since(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since);

/* Returns the name of the sensor with this handle in results of this connection, or NULL. Valid until the next call that waits
 * or steps; within a callback, until it returns. Handles may change their sensor, and differ between connections. */
const char *hankel_name(const hankel *h, uint32_t handle);

/* Gets the daemon's counters as JSON; the caller must free() *text. Returns 0, -ETIMEDOUT, ... */
int hankel_status(hankel *h, char **text, int timeout);

/* Gets a page of the list of sensors whose names match the glob ("" = all), with their condition, as JSON; PROTOCOL.md
 * (SENSORS) lists the members. limit: sensors on the page, 1..1000. after: 0, or `next` of the previous page. The caller must
 * free() *text. Returns 0, -EINVAL, -ETIMEDOUT, ...; a daemon older than this request ends the connection. */
int hankel_sensors(hankel *h, const char *glob, uint32_t limit, uint64_t after, char **text, int timeout);

/* Makes the daemon reload its configuration. *text: lines that report the outcome; the caller must free() it. Returns 0: in
 * force; 1: rejected, nothing changed; -ETIMEDOUT, ... */
int hankel_reload(hankel *h, char **text, int timeout);

/* Acknowledges a standing alert. number: of the alert, or 0: any standing alert of the sensor. Subscribers with HANKEL_DETAILS
 * receive HANKEL_ACKNOWLEDGED, and the status shows it. by: who acknowledges, at most 64 bytes; "": the daemon uses what it
 * knows of this client. *text: a line that reports the outcome; the caller must free() it. Returns 0: done; 1: not done (no
 * such alert, or already acknowledged); -ETIMEDOUT, ... */
int hankel_acknowledge(hankel *h, const char *sensor, uint32_t number, const char *by, char **text, int timeout);
/* Marks an incident as expected (HANKEL_EXPECTED) or a false alarm (HANKEL_FALSE), or takes that back (HANKEL_UNDO). incident:
 * its number, or 0: the sensor's latest incident that was reported or withheld. A mark silences the incident's sensors for a
 * week, except for incidents of a rank higher by 1. The rest as hankel_acknowledge. */
int hankel_feedback(hankel *h, const char *sensor, uint32_t incident, int what, const char *by, char **text, int timeout);
/* Begins maintenance: for `duration` ns, alerts of matching sensors are marked HANKEL_MAINTENANCE. duration 0: ends the
 * windows that were begun with exactly this glob. An empty glob begins nothing and returns 1; "*" matches every sensor. The
 * rest as hankel_acknowledge. */
int hankel_maintain(hankel *h, const char *glob, uint64_t duration, const char *by, char **text, int timeout);

/* Asks a machine of a cluster to give its partitions to others (HANKEL_DRAIN), to take its share again (HANKEL_UNDRAIN), or to
 * take over a partition (HANKEL_MOVE). Done once it has begun; the status report says how far it is. The rest as
 * hankel_acknowledge. */
int hankel_cluster(hankel *h, int what, uint32_t partition, const char *by, char **text, int timeout);

/* Ends the session: waits until the daemon has scored all sent points and the subscription has received all results and events
 * due. Afterwards the handle can only be closed. Returns 0, -ETIMEDOUT, ... */
int hankel_finish(hankel *h, int timeout);

struct hankel_counters {
  uint64_t points;      /* given to the socket */
  uint64_t datagrams;   /* datagrams that carried points over UDP */
  uint64_t refused;     /* points dropped because the server refused their sensor */
  uint64_t in_doubt;    /* points sent on a connection that broke before the daemon confirmed them */
  uint64_t unsent;      /* datagrams that the local system did not accept; the daemon counts them as lost */
  uint64_t reconnected; /* number of reconnections */
  uint64_t late;     /* with `counts`, after hankel_finish, of this connection: points not later than their sensor's last one, */
  uint64_t rejected; /* and points not finite, out of range or too far ahead of the daemon's clock */
  uint64_t counted;  /* 1: late and rejected are known; 0: not yet, or never, because the daemon's version does not send them */
};
void hankel_count(const hankel *h, struct hankel_counters *out);

/* Names for messages; "?" if out of range. */
const char *hankel_state_name(int state);
const char *hankel_event_name(int kind);
const char *hankel_channel_name(int channel);
const char *hankel_novelty_name(int kind);
const char *hankel_incident_name(int kind);
/* "notice", from HANKEL_WARNING "warning", from HANKEL_SEVERE "severe"; "unknown" for 0. */
const char *hankel_severity_name(float severity);
const char *hankel_error_name(int code);
const char *hankel_refusal_name(int refusal);

#ifdef __cplusplus
}
#endif
#endif
