/* Incidents: what several sensors, or several channels of one, say about one cause, and which of that is told.
 *
 * Events come in order of time. A sensor's event joins the incident that it is in, or that of a node above it that is known to
 * suffer (a newcomer joined in the last window), or begins one. Incidents whose sensors showed, within one window, more of the
 * children of a node than chance would (Poisson, at the rates of the fleet's tail) are merged. An incident's rank R is its
 * greatest severity and what that company adds; at the end of a tick (one time of the data) those that were touched are judged,
 * the gravest first: the budget tells which of them are told. The rest are withheld, which is known once they close without
 * having been told.
 *
 * The clock is the data's alone: the same events give the same decisions, also where they go on from an image.
 *
 * Thread: one at a time. */
#ifndef HK_INCIDENTS_H
#define HK_INCIDENTS_H

#include "daemon/base/buffer.h"
#include "daemon/incidents/fleet_names.h"

#define HK_SEVERITY_MOST 40.0
#define HK_INCIDENT_CHANNELS 32u

struct hk_incidents_rules {
  double a_day;          /* messages a day; 0: all are withheld */
  int64_t interval;      /* ns between points of a sensor, > 0: all spans are in points */
  uint32_t most_names;   /* sensors that are remembered; 0 = any number */
  uint32_t most_members; /* sensors in open incidents; 0 = HK_INCIDENT_MEMBERS */
};
#define HK_INCIDENT_MEMBERS 65536u

struct hk_incident {
  uint64_t id;                            /* 1.. */
  struct hk_incident *older, *newer;      /* open ones, by the time of their last event */
  int64_t open, last;                     /* ns: first and last event */
  struct hk_fleet_sensor *members, **end; /* linked by `next` */
  uint32_t n;
  double R;                         /* rank, 0..46, as it was judged last; it never falls */
  double S;                         /* greatest severity of its events */
  double company;                   /* -log10 of the chance that its sensors came together by chance; 0: not known */
  const struct hk_fleet_node *node; /* above those; NULL: none */
  double counted, weight;           /* rank in the fleet's tail and the weight there; counted < 0: it is not there */
  bool touched;                     /* since it was judged */
  bool told;
  int64_t told_at; /* ns */
  double told_R;
  uint32_t told_n, updates;
};

enum hk_incident_decision {
  HK_INCIDENT_TOLD,     /* a message; `threshold` is what R had to reach */
  HK_INCIDENT_UPDATE,   /* to a message: graver by 2, or three times the sensors */
  HK_INCIDENT_MERGED,   /* one that was told is found to be part of `into`; its members are with that already */
  HK_INCIDENT_CLOSED,   /* told: it is over; otherwise it was withheld for good. Its time is a hold behind its last event */
  HK_INCIDENT_ABSORBED, /* one that was not told is found to be part of `into` */
};
/* Called for each decision, in order. The incident, and what it refers to, is valid until it returns; it calls nothing of this
 * file that changes anything. into: of MERGED and ABSORBED, else NULL; threshold: of TOLD, else 0. */
typedef void hk_incident_decided(void *arg, int64_t time, enum hk_incident_decision decision, const struct hk_incident *incident,
                                 const struct hk_incident *into, double threshold);

struct hk_incidents_counts {
  uint64_t events, opened, told, updates, merged, withheld;
  uint64_t not_finite; /* events that were left out as their severity is none, */
  uint64_t unlisted;   /* or for lack of room: of members, names or memory */
  uint32_t open, members;
};

struct hk_incidents;

/* 0, -ENOMEM, -EIO, or -EINVAL: rules out of range. */
int hk_incidents_new(struct hk_incidents **out, const struct hk_incidents_rules *rules, hk_incident_decided *decided, void *arg);
void hk_incidents_free(struct hk_incidents *incidents); /* NULL is fine */

/* There is a sensor of this name (not empty, no 0 byte), in these groups. One that is known stays in the groups that it is in. 0,
 * -ENOMEM, -ENOSPC, -EINVAL. */
int hk_incidents_learn(struct hk_incidents *incidents, struct hk_string name, const struct hk_string *groups, uint32_t n_groups);
/* So many sensors are scored; 0: as many as there are names. */
void hk_incidents_sensors(struct hk_incidents *incidents, uint32_t sensors);
/* A sensor is silent for a week of the data from now on, unless the rank of its incident is higher than R by as much as that of
 * one that is repeated has to be: returns until when (ns); 0: it is not known. And it is heard again. */
int64_t hk_incidents_silence(struct hk_incidents *incidents, struct hk_string name, double R);
void hk_incidents_speak(struct hk_incidents *incidents, struct hk_string name);
/* The present tick, ns; INT64_MIN: there was none. */
int64_t hk_incidents_time(const struct hk_incidents *incidents);
/* The open incident that a sensor is in, or that has a number (name of length 0); NULL: there is none. Valid until something
 * changes. */
const struct hk_incident *hk_incidents_open(const struct hk_incidents *incidents, struct hk_string name, uint64_t id);
/* Another budget from now on. */
void hk_incidents_budget(struct hk_incidents *incidents, double a_day);

/* An alert was raised, or its peak grew. time, instant: ns; a time before that of the event before counts as that. channel below
 * HK_INCIDENT_CHANNELS. Below the weakest severity that counts nothing happens. An unknown sensor is in no groups. 0; -ENOMEM or
 * -ENOSPC: it is counted, and lost. */
int hk_incidents_event(struct hk_incidents *incidents, int64_t time, struct hk_string name, uint32_t channel, double severity,
                       int64_t instant);
/* The incident that the last event joined, as far as it is known by then; 0: none. Valid until the next one. */
uint64_t hk_incidents_joined(const struct hk_incidents *incidents);
/* Number of the last one that began; and those to come have numbers behind this. */
uint64_t hk_incidents_last(const struct hk_incidents *incidents);
void hk_incidents_go_on(struct hk_incidents *incidents, uint64_t id);
/* The data are behind `time` (ns) now, so that a tick that ended before is judged without waiting for another event. No decision
 * depends on whether, or how often, this is called, as long as the events behind it are of later ticks. */
void hk_incidents_reach(struct hk_incidents *incidents, int64_t time);
/* Closes what is over by `time`, which hk_incidents_reach was told before: whoever waits for ends need not wait for another
 * event. Nothing else hangs on it. hk_incidents_expired: whether there is such a one. */
void hk_incidents_expire(struct hk_incidents *incidents, int64_t time);
bool hk_incidents_expired(const struct hk_incidents *incidents, int64_t time);
/* Judges what there is and closes all incidents: for the end of a recording. */
void hk_incidents_finish(struct hk_incidents *incidents);

/* Calls for each incident that is open, in order of the last events; what is called changes nothing. */
void hk_incidents_each(const struct hk_incidents *incidents, void (*one)(void *arg, const struct hk_incident *incident),
                       void *arg);

struct hk_incidents_counts hk_incidents_count(const struct hk_incidents *incidents);

/* The member that changed first, by first alert, in the window that holds most members; *ties: how many others are too close to
 * tell (at most one point behind), of which ties[0..most-1] get the first. NULL: no memory. */
const struct hk_fleet_sensor *hk_incident_first(const struct hk_incidents *incidents, const struct hk_incident *incident,
                                                const struct hk_fleet_sensor **ties, uint32_t most, uint32_t *n_ties);
/* Its n members in the order of their first alerts; the caller frees the list. NULL: no memory. */
const struct hk_fleet_sensor **hk_incident_in_order(const struct hk_incident *incident);
const struct hk_fleet_sensor *hk_incident_strongest(const struct hk_incident *incident);

#endif
