/* libhankel: client of hankeld.
 *
 *   struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
 *   hankel *h = hankel_open(&options);
 *   int sensor = hankel_sensor(h, "machine temperature");
 *   hankel_send(h, (uint32_t)sensor, time_ns, value); ...        buffered
 *   hankel_sync(h, 5000);                                        all of them taken over by the daemon
 *   hankel_close(h);
 *
 * Blocking use: hankel_wait, hankel_flush, hankel_sync and hankel_status wait, at most as long as they are told.
 * Non-blocking use: poll hankel_fd for hankel_events, at most for hankel_timeout, then call hankel_step(h, 0). All that
 * arrives comes out through the callbacks, which are called from within hankel_step and the waiting calls only.
 *
 * When the connection breaks the library connects again with growing pauses, registers all sensors and subscribes again,
 * and tells through `disconnected` how many points may not have arrived. Memory is bounded: points that cannot be sent
 * stay in a buffer of fixed size, and hankel_send says -EAGAIN when it is full.
 *
 * With the option `feed` none is in doubt: points stay in the buffer until the daemon acknowledges them, and what it has not is
 * sent again after a break, so that each counts once. hankel_feed_position says how far that is; a program that starts over goes
 * on from there. A subscription with HANKEL_POSITIONS goes on behind the last event that it brought, so that none is lost or
 * comes twice, over restarts of the daemon, too, where it keeps its state.
 *
 * Errors: 0 (or a count) is good, negative is an errno, and hankel_error says in words what was wrong.
 * Thread: one handle, one thread; different handles are independent. Callbacks must not close the handle.
 * The protocol itself is described in PROTOCOL.md. */
#ifndef HANKEL_H
#define HANKEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a result says of its point. */
enum hankel_state {
  HANKEL_WARMING = 0, /* the window is not full yet */
  HANKEL_OK = 1,
  HANKEL_GAP = 2,      /* too much of the span was filled in: no alert comes of it */
  HANKEL_LATE = 3,     /* not after the sensor's last point: changed nothing */
  HANKEL_REJECTED = 4, /* not finite or out of range: changed nothing */
};

enum hankel_event_kind {
  HANKEL_RAISED = 1,
  HANKEL_CORRECTED = 2, /* the instant of a raised alert is known better now */
  HANKEL_CLEARED = 3,
  HANKEL_STALE = 4, /* notices: a sensor has gone silent, or is back */
  HANKEL_BACK = 5,
  HANKEL_FLAPPING = 7,     /* with HANKEL_DETAILS: the sensor raises too many alerts; the next are held back */
  HANKEL_ACKNOWLEDGED = 8, /* with HANKEL_DETAILS: somebody has taken note of an alert that stands */
};

/* What became of an incident: of what several sensors, or several channels of one, say about one cause. */
enum hankel_incident_kind {
  HANKEL_INCIDENT_TOLD = 1,     /* it is raised: it fits into the budget of messages */
  HANKEL_INCIDENT_UPDATE = 2,   /* one that was told has escalated: it is graver by 2, or has three times the sensors */
  HANKEL_INCIDENT_MERGED = 3,   /* it is found to be part of another */
  HANKEL_INCIDENT_CLOSED = 4,   /* one that was told is over */
  HANKEL_INCIDENT_WITHHELD = 5, /* one is over that was not told */
  HANKEL_INCIDENT_EXPECTED = 6, /* somebody said that it was to be expected, */
  HANKEL_INCIDENT_FALSE = 7,    /* or a false alarm: its sensors are silent for a week, unless they are graver by 1; */
  HANKEL_INCIDENT_UNDONE = 8,   /* or took that back */
};

/* Which question an alert answers. */
enum hankel_channel {
  HANKEL_NO_CHANNEL = 0,
  HANKEL_SCORE = 1,       /* ika, svd: does the newest span look unlike the one before it? */
  HANKEL_CHANGE = 2,      /* graph: does the sensor behave otherwise than in all that is kept since its last change? */
  HANKEL_SHIFT = 3,       /* shift: has the level moved, or was there a short event? */
  HANKEL_GROUP = 4,       /* have the sensors of a machine changed, taken together? */
  HANKEL_NOVELTY = 5,     /* novelty: does the sensor do what it has not done before? */
  HANKEL_NEARS_LIMIT = 6, /* limit: does its trend reach a limit soon? */
};

/* What else there is to say of an event; added up. */
enum hankel_mark {
  HANKEL_MAINTENANCE = 1, /* the alert was raised in a maintenance window of its sensor */
  HANKEL_SECONDARY = 2,   /* of a field: another sensor, `by`, is to blame for it */
};

/* What to subscribe to; add them up. */
enum hankel_what {
  HANKEL_SCORES = 1,   /* results with a score */
  HANKEL_UNSCORED = 2, /* results without one */
  HANKEL_EVENTS = 4,
  HANKEL_NOTICES = 8,
  HANKEL_VALUES = 16,    /* the points' values along with the results */
  HANKEL_POSITIONS = 32, /* events with their position and sequence: see hankel_subscribe_since */
  HANKEL_SEQUENCES = 64, /* the points' sequences along with the results */
  HANKEL_DETAILS = 128,  /* events with all that is known of them, and HANKEL_FLAPPING and HANKEL_ACKNOWLEDGED */
  HANKEL_NOTES =
      256, /* and those of the channels novelty and limit with what they have to say: struct hankel_novelty, hankel_limit */
  /* what becomes of incidents; and events with the incident that they belong to: they come once that is known, which takes
   * some seconds where the daemon makes incidents */
  HANKEL_INCIDENTS = 512,
};

/* What people at a desk ask for. */
enum hankel_operation {
  HANKEL_ACKNOWLEDGE = 1,
  HANKEL_BEGIN_MAINTENANCE = 2,
  HANKEL_END_MAINTENANCE = 3,
  HANKEL_EXPECTED = 4,
  HANKEL_FALSE = 5,
  HANKEL_UNDO = 6
};

/* What outlives the daemon. */
enum hankel_durability {
  HANKEL_NOT_DURABLE = 0,
  HANKEL_SNAPSHOTS = 1, /* what the last snapshot has */
  HANKEL_JOURNALED = 2, /* all that was acknowledged */
};

#define HANKEL_NOW UINT64_MAX         /* as a position: that of the last event so far */
#define HANKEL_NOBODY_KNOWS INT64_MAX /* or more: of a gap's events, where the position asked for lies beyond the log */

/* Why the server refused a name. */
enum hankel_refusal {
  HANKEL_BAD_NAME = 1,
  HANKEL_FULL = 2,
  HANKEL_NO_DETECTOR = 3,
  HANKEL_RESERVED = 4,
  HANKEL_QUOTA = 5, /* this peer has as many sensors as one may have */
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
};

typedef struct hankel hankel;

/* A batch of results, as columns of n. All of it is valid during the callback only. */
struct hankel_scores {
  uint32_t n;
  const char *const *name;  /* of the sensor, ends with 0; NULL with the option `handles` */
  const int64_t *time;      /* ns */
  const double *value;      /* NULL unless subscribed with HANKEL_VALUES */
  const float *score;       /* NaN: none was due */
  const uint8_t *state;     /* enum hankel_state */
  const uint32_t *handle;   /* the daemon's number of the sensor: hankel_name has its name */
  const uint64_t *sequence; /* of the point among its sensor's, from 1 on, for ever; NULL unless subscribed with HANKEL_SEQUENCES,
                               and where the daemon keeps no state */
};

/* What is new about a sensor. */
enum hankel_novelty_kind {
  HANKEL_NO_NOVELTY = 0,      /* nothing is said, and all else of the note is 0 */
  HANKEL_NOVELTY_VALUE = 1,   /* a value */
  HANKEL_NOVELTY_CONTEXT = 2, /* a state: a mean of the last `reach` points */
  HANKEL_NOVELTY_SHAPE = 3,   /* the shape of the last `reach` points */
};

/* Of an event of the channel novelty. What was expected and observed stands in the event: `before` is the nearest that was there
 * and `after` what is now (a value, a mean; of a shape 0 and the rms difference to the nearest), `spread_before` how far these
 * usually lie apart at most. */
struct hankel_novelty {
  uint8_t kind;      /* enum hankel_novelty_kind */
  uint16_t reach;    /* points */
  uint32_t compared; /* points that it was compared with, the newest excepted */
  int64_t nearest;   /* ns: when the nearest was there */
  int64_t oldest;    /* ns: beginning of what it was compared with */
  double low, high;  /* range of the values that are resident */
};

/* Of an event of the channel limit: when the trend of the last window reaches the limit. The event's `before` and `after` are the
 * trend's line where its window began and now, the spreads how far the medians of blocks lie from it. */
struct hankel_limit {
  uint16_t blocks;  /* of 24 that the trend is of; 0: nothing is said, and all else is 0 */
  float slope;      /* units a second, below 0: it falls */
  double limit;     /* the one of two that it leads to */
  int64_t earliest; /* ns: when it is reached by the steeper quartile of the slopes, */
  int64_t reached;  /* by their median; not after the event's time: it is reached, */
  int64_t latest;   /* and by the gentler quartile; INT64_MAX: never */
};

/* What a severity should do: a notice informs those who look, a warning is worth a look today, what is severe should call
 * somebody. */
#define HANKEL_WARNING 2.5f
#define HANKEL_SEVERE 3.5f

struct hankel_event {
  const char *name;
  uint32_t number; /* with the name the event's id, `name:number`; 0 for a notice */
  uint8_t kind;    /* enum hankel_event_kind */
  int64_t time;    /* ns: of the point; for a notice, of the sensor's last point */
  int64_t from;    /* ns: start of the interval that the alert was raised on */
  int64_t instant; /* ns: estimate of when the change took place */
  float score;     /* raised: the score; corrected, cleared: the highest since */
  double before;   /* levels before and after the change */
  double after;
  uint64_t position; /* in the daemon's event log; 0: it is not in one, or was not asked for (HANKEL_POSITIONS) */
  uint64_t sequence; /* of the event among its sensor's, from 1 on; 0 as above */
  /* 0..40: how rare so grave an alert is, on one scale for all channels; the highest since it was raised. Where nothing has
   * changed at most 2 x 10^-severity of the blocks of 40 points have such a one. 0: not known. This and what follows: 0 or ""
   * unless subscribed with HANKEL_DETAILS */
  float severity;
  float margin;        /* what the statistic was of its threshold, over which the alert was raised */
  float spread_before; /* standard deviation about the levels */
  float spread_after;
  uint8_t channel; /* enum hankel_channel */
  uint8_t marks;   /* enum hankel_mark, added up */
  uint32_t held;   /* raised: alerts of the sensor that were held back since the last that was told */
  /* channel change: the earlier segment of the sensor that the new one is most like. likeness 0: it is like none. */
  float likeness;                /* 0..1 */
  uint32_t similar;              /* number of the alert with which that one began; 0: it is the first that is known */
  int64_t similar_from;          /* ns: its beginning */
  const char *by;                /* acknowledged: who did */
  struct hankel_novelty novelty; /* all 0 unless subscribed with HANKEL_NOTES */
  uint64_t incident;             /* that it belongs to; 0: to none, or not subscribed with HANKEL_INCIDENTS */
  struct hankel_limit limit;     /* all 0 unless subscribed with HANKEL_NOTES */
};

/* What became of an incident. */
struct hankel_incident {
  uint64_t id;
  uint8_t kind;      /* enum hankel_incident_kind */
  uint8_t told;      /* 1: it fitted into the budget, once at least */
  uint32_t count;    /* sensors in it */
  uint64_t into;     /* merged: the incident that it is part of; else 0 */
  int64_t time;      /* ns, of the data: when this was decided, */
  int64_t since;     /* and its first event */
  double rank;       /* what it was told or withheld by: the greatest severity, and what the company of its sensors adds */
  double severity;   /* the greatest of its events, 0..40 */
  uint64_t position; /* in the daemon's event log; 0: not asked for (HANKEL_POSITIONS) */
  const char *text;  /* a sentence for people */
  const char *about; /* an object of JSON: its sensors, which was first, and so on. PROTOCOL.md, incidents */
};

/* Any may be NULL. arg: as given in the options. */
struct hankel_callbacks {
  void (*scores)(void *arg, const struct hankel_scores *scores);
  void (*event)(void *arg, const struct hankel_event *event);
  /* So many were left out here: this subscriber read too slowly, or events are not in the daemon's log any more. events:
   * HANKEL_NOBODY_KNOWS or more if the log ends before the position that was asked for, so it is another one. */
  void (*gap)(void *arg, uint64_t results, uint64_t events);
  void (*connected)(void *arg, const char *server);
  /* The connection ended. in_doubt: points handed over since the daemon last confirmed; some may not have arrived. */
  void (*disconnected)(void *arg, uint64_t in_doubt, const char *reason);
  /* The server refused a sensor (enum hankel_refusal): its points are dropped here and counted. */
  void (*refused)(void *arg, const char *name, int refusal);
  /* An error frame that did not end the connection (enum hankel_error_code). */
  void (*error)(void *arg, int code, const char *message);
  /* With HANKEL_INCIDENTS, of incidents one of whose sensors matches. */
  void (*incident)(void *arg, const struct hankel_incident *incident);
};

/* TLS, and what is shown to the daemon. Files are read whenever the library connects, so that what they hold may change. Where
 * the daemon does not take what is shown, or its certificate is not good, nothing is tried again (-EACCES), unless it was good
 * before. */
struct hankel_security {
  int tls;                 /* 1: the connection is by TLS, and the daemon's certificate has to be good for the address's host */
  const char *ca;          /* file in PEM: authorities; NULL: those of the system */
  const char *certificate; /* file in PEM: our certificate, and those that it was signed with; NULL: none */
  const char *key;         /* file in PEM: its key; NULL: it stands in the same file */
  const char *token;       /* NULL: none */
  const char *token_file;  /* the token is its first line; NULL: none */
  int mac;                 /* 1: datagrams carry a keyed checksum, which a listener with `mac = yes` needs; needs tls */
  int token_in_clear; /* 1: the token may go beyond loopback without tls, where everybody on the way can read it. Else it is not
                         sent there, and nothing is tried again (-EPERM) */
};

struct hankel_options {
  const char *address; /* HOST:PORT, [V6]:PORT or PORT of a binary listener over TCP */
  const char *udp;     /* the same, over UDP: points then go as datagrams. NULL: over TCP */
  const char *client;  /* name of this program for the daemon's log */
  uint32_t buffer;     /* points that wait to be sent, at most; 1024..1048576 */
  int once;            /* 1: do not connect again when the connection breaks */
  int handles;         /* 1: results come without names, which takes a core through 100 M of them a second and more */
  struct hankel_callbacks callbacks;
  void *arg;
  struct hankel_security security;
  const char *feed; /* name of the feed that all points belong to, 1 to 255 bytes, as a sensor's; over TCP only. NULL: none */
  int counts;       /* 1: hankel_finish learns how many points were late or rejected */
};
#define HANKEL_OPTIONS_DEFAULT                                                                                                   \
  {                                                                                                                              \
    "127.0.0.1:7410", NULL, "libhankel", 65536, 0, 0, { 0 }, NULL, { 0 }, NULL, 0                                                \
  }

/* Makes a handle and begins to connect. The strings are copied. A numeric address or a local name does not block. NULL when
 * there is no memory; any other fault shows in the first call that waits or steps. */
hankel *hankel_open(const struct hankel_options *options);

/* Closes at once; what was not flushed is lost. NULL is allowed. */
void hankel_close(hankel *h);

/* The last fault in words, "" when there was none. Valid until the next call. */
const char *hankel_error(const hankel *h);

/* 1 while connected and greeted. */
int hankel_connected(const hankel *h);

/* For poll loops: the descriptor (-1 while there is none; it changes on reconnection), the poll events wanted (POLLIN,
 * POLLOUT), and ms until hankel_step must be called even if nothing happens (-1: never). */
int hankel_fd(const hankel *h);
short hankel_events(const hankel *h);
int hankel_timeout(const hankel *h);

/* Waits for the network up to timeout ms (0: not at all, -1: until something happens), then reads, writes and calls back. 0,
 * or a negative errno: with `once`, the connection is over; else only when there is no memory. */
int hankel_step(hankel *h, int timeout);

/* Waits until connected. 0, -ETIMEDOUT, or why it cannot be. */
int hankel_wait(hankel *h, int timeout);

/* Number of a sensor, >= 0, the same for the life of the handle; a new name is registered with the next points. -EINVAL: not a
 * valid name (1 to 512 bytes of UTF-8, no control characters); -ENOMEM. */
int hankel_sensor(hankel *h, const char *name);

/* Puts points into the buffer; it is sent when full, on hankel_flush, and on hankel_step. -EAGAIN: the buffer is full
 * (nothing was taken): hankel_flush or hankel_step, then again. -EINVAL: no such sensor. time: ns since 1970. Columns: takes as
 * many as fit and returns how many. */
int hankel_send(hankel *h, uint32_t sensor, int64_t time, double value);
int64_t hankel_send_columns(hankel *h, uint32_t n, const uint32_t *sensor, const int64_t *time, const double *value);

/* Waits until the buffer is empty and the socket has taken all. 0, -ETIMEDOUT, or the connection's fault. */
int hankel_flush(hankel *h, int timeout);

/* With the option `feed`: how many points of the feed, from its beginning, the daemon has for certain. Once connected the first
 * time that is what it had of it before: the point that is sent first is the one behind those. */
uint64_t hankel_feed_position(const hankel *h);
/* What that means: enum hankel_durability of the daemon. */
int hankel_durability(const hankel *h);

/* hankel_flush, then waits until the daemon confirms that it has taken over all points (over UDP: those that arrived; of a feed:
 * has acknowledged them), and that a new subscription is in force. -ECONNRESET: the connection broke meanwhile with points in
 * doubt (it is being made anew). */
int hankel_sync(hankel *h, int timeout);

/* Subscribes to sensors that match the glob (`*` and `?`; "" = all), replacing an earlier subscription; what = 0 ends it. Kept
 * over reconnections. what: enum hankel_what, added up. 0 or -EINVAL. */
int hankel_subscribe(hankel *h, const char *glob, float min_score, uint32_t what);
/* The same with HANKEL_POSITIONS, beginning with the events behind a position: of the last one that is known, 0 for all that the
 * daemon has, HANKEL_NOW as hankel_subscribe. What it has not any more comes as a gap. */
int hankel_subscribe_since(hankel *h, const char *glob, float min_score, uint32_t what, uint64_t since);

/* The name of the sensor that results of this connection give this handle, NULL when there is none. Valid until the next call
 * that waits or steps, but within a callback until it returns: a handle may get another sensor, and other handles another
 * connection. */
const char *hankel_name(const hankel *h, uint32_t handle);

/* The daemon's counters as JSON text; *text is the caller's to free(). 0, -ETIMEDOUT, ... */
int hankel_status(hankel *h, char **text, int timeout);

/* A part of the list of sensors whose names match the glob ("" = all), and how they are, as JSON text; PROTOCOL.md (SENSORS) has
 * its members. At most `limit` of them, 1..1000, from `after` on: 0, or `next` of the part before. *text is the caller's to
 * free(). 0, -EINVAL, -ETIMEDOUT, ...; a daemon that is older than this request ends the connection. */
int hankel_sensors(hankel *h, const char *glob, uint32_t limit, uint64_t after, char **text, int timeout);

/* Makes the daemon read its configuration again. *text: lines that say what came of it; the caller's to free(). 0: it is in
 * force; 1: it is not, and all is as before; -ETIMEDOUT, ... */
int hankel_reload(hankel *h, char **text, int timeout);

/* Takes note of an alert that stands: the id's number, or 0: of whichever of the sensor's does. Subscribers with HANKEL_DETAILS
 * are told, and the status shows it. by: who does, at most 64 bytes; "": the daemon says what it knows of us. *text: a line that
 * says what came of it; the caller's to free(). 0: done; 1: it is not (there is no such alert, or somebody has before);
 * -ETIMEDOUT, ... */
int hankel_acknowledge(hankel *h, const char *sensor, uint32_t number, const char *by, char **text, int timeout);
/* Says of an incident that it was to be expected (HANKEL_EXPECTED), that it was a false alarm (HANKEL_FALSE), or takes that back
 * (HANKEL_UNDO): the one with this number; 0: that of the sensor, the latest that was told or withheld. Its sensors are silent
 * for a week, unless they are graver by 1. The rest as above. */
int hankel_feedback(hankel *h, const char *sensor, uint32_t incident, int what, const char *by, char **text, int timeout);
/* Alerts that sensors raise from now on for `duration` ns are marked HANKEL_MAINTENANCE; with 0 the windows end that were asked
 * for with this very glob. An empty glob begins nothing, and gives 1; "*" is every sensor. The rest as above. */
int hankel_maintain(hankel *h, const char *glob, uint64_t duration, const char *by, char **text, int timeout);

/* Says goodbye: waits until the daemon has scored all that was sent and the subscription has received what it is owed. The
 * handle can only be closed afterwards. 0, -ETIMEDOUT, ... */
int hankel_finish(hankel *h, int timeout);

struct hankel_counters {
  uint64_t points;      /* handed to the socket */
  uint64_t datagrams;   /* of them over UDP, in so many datagrams */
  uint64_t refused;     /* points dropped because the server refused their sensor */
  uint64_t in_doubt;    /* points handed to a connection that broke before the daemon had confirmed them */
  uint64_t unsent;      /* datagrams that the own system would not take; the daemon counts them as lost */
  uint64_t reconnected; /* times connected again */
  uint64_t late;        /* with `counts`, after hankel_finish, of this connection: points not after their sensor's last one, */
  uint64_t rejected;    /* and points not finite, out of range or too far ahead of the daemon's clock */
  uint64_t counted;     /* 1: these two are known; 0: not yet, or never, for the daemon is of a version that does not say */
};
void hankel_count(const hankel *h, struct hankel_counters *out);

/* Names for messages; "?" when out of range. */
const char *hankel_state_name(int state);
const char *hankel_event_name(int kind);
const char *hankel_channel_name(int channel);
const char *hankel_novelty_name(int kind);
const char *hankel_incident_name(int kind);
/* "notice", from HANKEL_WARNING on "warning", from HANKEL_SEVERE on "severe"; "unknown" of 0. */
const char *hankel_severity_name(float severity);
const char *hankel_error_name(int code);
const char *hankel_refusal_name(int refusal);

#ifdef __cplusplus
}
#endif
#endif
