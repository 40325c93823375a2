/* Incidents: alerts of several sensors, or of several channels of one sensor, with one cause; and which incidents are reported.
 *
 * Events come in order of time. A sensor's event joins the sensor's incident, or that of a node above it with recent growth (a
 * new sensor joined in the last window), or begins one. Incidents are merged if, within one window, more children of a node are
 * active than chance explains (Poisson, at the rates of the fleet's tail). An incident's rank R is its greatest severity plus an
 * amount for that company. At the end of a tick (one time of the data) the changed incidents are judged, by falling rank: the
 * budget decides which are reported. The others are withheld, which is known once they close without having been reported.
 *
 * The clock is the data's alone: the same events give the same decisions, also after a restart from an image.
 *
 * Thread: one at a time. */
#ifndef HK_INCIDENTS_H
#define HK_INCIDENTS_H

#include "daemon/base/buffer.h"
#include "daemon/incidents/fleet_names.h"
#include "daemon/incidents/incident_ends.h"

#define HK_SEVERITY_MOST 40.0
#define HK_INCIDENT_CHANNELS 32u
#define HK_INCIDENT_WINDOW 12 /* points */

struct hk_incidents_rules {
  double a_day;          /* messages a day; 0: all are withheld */
  int64_t interval;      /* ns between points of a sensor, > 0: all spans are in points */
  uint32_t most_names;   /* sensors that are remembered; 0 = any number */
  uint32_t most_members; /* sensors in open incidents; 0 = HK_INCIDENT_MEMBERS */
};
#define HK_INCIDENT_MEMBERS 65536u

struct hk_incident {
  uint64_t id;                            /* 1.. */
  struct hk_incident *older, *newer;      /* open ones, by the time of their last event; */
  struct hk_incident_end over;            /* and by that from which the data must go on: of `heard` */
  int64_t open, last;                     /* ns: first and last event */
  int64_t heard;                          /* ns: how far the data were when one of its events was logged; at least `last` */
  int64_t own;                            /* ns: last event by the data of its own sensors; `last`, unless these are late */
  struct hk_fleet_sensor *members, **end; /* linked by `next` */
  uint32_t n;
  double R;                         /* rank, 0..46, at the last judgement; it never falls */
  double S;                         /* greatest severity of its events */
  double company;                   /* -log10 of the chance that its sensors came together by chance; 0: not known */
  const struct hk_fleet_node *node; /* the node above them; NULL: none */
  double counted, weight;           /* rank in the fleet's tail and the weight there; counted < 0: it is not there */
  bool touched;                     /* since it was judged */
  bool told;
  int64_t told_at; /* ns */
  double told_R;
  uint32_t told_n, updates;
};

enum hk_incident_decision {
  HK_INCIDENT_TOLD,     /* reported; R reached `threshold` */
  HK_INCIDENT_UPDATE,   /* of a reported one: more severe by 2, or three times the sensors */
  HK_INCIDENT_MERGED,   /* a reported one was merged into `into`, which has its members already */
  HK_INCIDENT_CLOSED,   /* a reported one is over, or an unreported one is withheld for good. Its time is a hold after its last
                           event */
  HK_INCIDENT_ABSORBED, /* an unreported one was merged into `into` */
};
/* Called for each decision, in order. The incident and its pointers are valid until it returns; it must not change incidents.
 * into: of MERGED and ABSORBED, otherwise NULL; threshold: of TOLD, otherwise 0. */
typedef void hk_incident_decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                                 const struct hk_incident *into, double threshold);

struct hk_incidents_counts {
  uint64_t events, opened, told, updates, merged, withheld;
  uint64_t not_finite; /* events ignored for lack of a severity, */
  uint64_t unlisted;   /* or for lack of room: of members, names or memory */
  uint32_t open, members;
};

struct hk_incidents;

/* 0, -ENOMEM, -EIO, or -EINVAL: rules out of range. */
int hk_incidents_new(struct hk_incidents **out, const struct hk_incidents_rules *rules, hk_incident_decided *decided, void *arg);
void hk_incidents_free(struct hk_incidents *incidents); /* NULL is allowed */

/* Adds a sensor of this name (not empty, no 0 byte), in these groups. A known sensor keeps its groups. 0, -ENOMEM, -ENOSPC,
 * -EINVAL. */
int hk_incidents_learn(struct hk_incidents *incidents, struct hk_string name, const struct hk_string *groups, uint32_t n_groups);
/* Sets the number of scored sensors; 0: the number of names. */
void hk_incidents_sensors(struct hk_incidents *incidents, uint32_t sensors);
/* Mutes a sensor for a week of the data, unless the rank of its incident exceeds R by the margin of repetition: returns until
 * when (ns); 0: unknown sensor. The second unmutes it. */
int64_t hk_incidents_silence(struct hk_incidents *incidents, struct hk_string name, double R);
void hk_incidents_speak(struct hk_incidents *incidents, struct hk_string name);
/* The present tick, ns; INT64_MIN: there was none. */
int64_t hk_incidents_time(const struct hk_incidents *incidents);
/* The open incident of a sensor, or of a number (name of length 0); NULL: none. Valid until the next change. */
const struct hk_incident *hk_incidents_open(const struct hk_incidents *incidents, struct hk_string name, uint64_t id);
/* Another budget from now on. */
void hk_incidents_budget(struct hk_incidents *incidents, double a_day);

/* An alert was raised, or its peak grew. time, instant: ns; a time before the previous event's counts as the latter. channel
 * below HK_INCIDENT_CHANNELS. Events below the weakest severity are ignored. An unknown sensor is in no groups. 0; -ENOMEM or
 * -ENOSPC: counted, and lost. */
int hk_incidents_event(struct hk_incidents *incidents, int64_t time, struct hk_string name, uint32_t channel, double severity,
                       int64_t instant);
/* How far the data of other sensors were already when the next event was logged (ns; 0: unknown, or no further). If that is more
 * than a window later than the event, its sensor's data are late, and its incident ends a hold after that: else it would end as
 * it begins. For events in order of time this changes nothing. */
void hk_incidents_hear(struct hk_incidents *incidents, int64_t reached);
/* What the last event said to people, up to HK_INCIDENT_SAID bytes. It is kept if the event is the gravest of its sensor so far;
 * without memory it is not. */
void hk_incidents_said(struct hk_incidents *incidents, struct hk_string what);
#define HK_INCIDENT_SAID 512u
/* The incident that the last event joined, as known so far; 0: none. Valid until the next event. */
uint64_t hk_incidents_joined(const struct hk_incidents *incidents);
/* The number of the last incident that began; sets the number after which the next ones are numbered. */
uint64_t hk_incidents_last(const struct hk_incidents *incidents);
void hk_incidents_go_on(struct hk_incidents *incidents, uint64_t id);
/* The data have passed `time` (ns): judges a tick that ended before, without waiting for another event. No decision depends on
 * whether, or how often, this is called, as long as later events are of later ticks. */
void hk_incidents_reach(struct hk_incidents *incidents, int64_t time);
/* Closes incidents that are over by `time`, which hk_incidents_reach was given before, so that ends do not wait for another
 * event. Decisions do not depend on it, if events come in order of time. hk_incidents_expired: whether there is such an incident.
 */
void hk_incidents_expire(struct hk_incidents *incidents, int64_t time);
bool hk_incidents_expired(const struct hk_incidents *incidents, int64_t time);
/* Closes the open incident of this number, if there is one: that it was over was decided before. */
void hk_incidents_close(struct hk_incidents *incidents, uint64_t id);
/* Judges all events and closes all incidents: for the end of a recording. */
void hk_incidents_finish(struct hk_incidents *incidents);

/* Calls a function for each open incident, in order of their last events; the function must not change incidents. */
void hk_incidents_each(const struct hk_incidents *incidents, void (*one)(void *arg, const struct hk_incident *incident),
                       void *arg);

struct hk_incidents_counts hk_incidents_count(const struct hk_incidents *incidents);

#endif
