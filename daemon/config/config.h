/* Configuration: one file with the sections [daemon], [listen NAME], [detector NAME] and [group NAME]; hankeld.conf(5) documents
 * every key. config_reader.h reads it. */
#ifndef HK_CONFIG_H
#define HK_CONFIG_H

#include "cpu/detectors.h"
#include "cpu/field/file.h"
#include "cpu/group/group.h"
#include "cpu/model/pipelines_matrix.h"
#include "daemon/config/cluster_rule.h"
#include "daemon/config/incidents_rule.h"
#include "daemon/config/listener_rules.h"
#include "daemon/config/maintenance_rule.h"
#include "daemon/config/mqtt_rule.h"
#include "daemon/config/notify_rule.h"
#include "daemon/config/picture_rule.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HK_CONFIG_MAINTENANCE_MAX 64
#define HK_CONFIG_NOTIFY_MAX 16
#define HK_CONFIG_MQTT_MAX 16
#define HK_CONFIG_LISTENERS_MAX 64
#define HK_CONFIG_DETECTORS_MAX 1024
#define HK_CONFIG_GROUPS_MAX 64 /* those of statistic = both count twice */
#define HK_CONFIG_FIELDS_MAX 16
/* Numbers of detectors: those of a configuration, and of the one that it replaces. */
#define HK_DETECTORS_MAX (2 * HK_CONFIG_DETECTORS_MAX)
#define HK_CONFIG_PATH_MAX 512 /* bytes of a path, with the 0 */

enum hk_protocol { HK_PROTOCOL_BINARY, HK_PROTOCOL_LINE, HK_PROTOCOL_TEXT, HK_PROTOCOL_HTTP };
enum hk_transport { HK_TRANSPORT_TCP, HK_TRANSPORT_UDP };
enum hk_backend_choice { HK_BACKEND_AUTO, HK_BACKEND_CPU, HK_BACKEND_CUDA, HK_BACKEND_REFERENCE };
/* What to do when the GPU is lost while the daemon runs. */
enum hk_device_failure { HK_DEVICE_FAILURE_AUTO, HK_DEVICE_FAILURE_CPU, HK_DEVICE_FAILURE_STOP };
/* What survives the daemon: nothing; the last snapshot; every acknowledged point. */
enum hk_durability { HK_DURABILITY_NONE, HK_DURABILITY_SNAPSHOT, HK_DURABILITY_JOURNAL };

/* Names by number; the tables end with NULL. */
extern const char *const hk_durability_words[], *const hk_protocol_words[], *const hk_transport_words[];
const char *hk_durability_name(uint32_t durability);
const char *hk_protocol_name(enum hk_protocol protocol);
const char *hk_transport_name(enum hk_transport transport);

struct hk_config_listener {
  char name[HK_CONFIG_NAME_MAX];
  enum hk_protocol protocol;
  enum hk_transport transport;
  struct sockaddr_storage address; /* IPv4 or IPv6 */
  int64_t precision;               /* line protocol: unit of time, ns */
  struct hk_rules rules;           /* security keys */
};

/* Separates the name of a section's further algorithm, and of its derived series: NAME#graph, SENSOR#graph. */
#define HK_DERIVED_MARK '#'
#define HK_SECOND_SUFFIX ".novelty" /* of the name of a second group */

struct hk_config_detector {
  char name[HK_CONFIG_NAME_MAX];
  char match[513]; /* glob for names of sensors, ends with 0 */
  struct hk_detector detector;
  uint32_t number; /* in backends and registry: its place in the file at the start, or the number given by a reload */
  bool derived;    /* its sensors get points from the daemon, and none from peers: a companion of the section before it, */
  bool group;      /* or the series of a group or field, or SENSOR#residual, #model, ... of a field, which are no companions; */
  bool field;      /* the series of a field, or SENSOR#OPERATOR */
  bool residual;   /* SENSOR#OPERATOR of a field */
  bool second;     /* the series of a second group */
};

/* Sensors of many machines: sensors whose names differ only in what the capture does not match belong to one machine. Each
 * machine has a series, NAME#CAPTURE. Its detector, #NAME, computes nothing; such detectors come after all others. */
struct hk_config_group {
  char name[HK_CONFIG_NAME_MAX];
  char match[513];  /* glob with one capture, (*), ends with 0 */
  uint32_t capture; /* offset of the bracket in match */
  bool second;      /* NAME.novelty: the novelty of the group NAME with statistic = both, made of that section */
  struct hk_group_rule rule;
};

#define HK_CONFIG_NO_CAPTURE UINT32_MAX

/* What a line of sensors needs. */
struct hk_config_line {
  uint64_t bytes; /* memory */
  uint32_t delay; /* rows from the beginning of a change to its alert */
  size_t sensors; /* within reach of a place, on average */
};

/* A field of similar sensors: sensors whose names differ only in what the capture does not match, or all that match. Each member
 * has series, SENSOR#residual and SENSOR#residual.ALGORITHM (of a model SENSOR#model, and so on), and
 * each field has one of its own, NAME#CAPTURE or NAME#field. Their detectors, NAME#OPERATOR and #NAME,
 * come after all others. */
struct hk_config_field {
  char name[HK_CONFIG_NAME_MAX];
  char match[513];                          /* glob with a capture or none, ends with 0 */
  char detector[HK_CONFIG_NAME_MAX];        /* the section whose keys the series have */
  uint32_t capture;                         /* offset of the bracket in match; HK_CONFIG_NO_CAPTURE: none */
  uint32_t n_series, series[HK_ALGORITHMS]; /* indices of their detectors */
  struct hk_field_rule rule;
  struct hk_field_file file;  /* all zero: none, or not read */
  double row;                 /* measured time for a row of its model when it was read, s; 0: no model */
  struct hk_config_line line; /* of a focus: when it was read */
  struct hk_matrix_cost cost; /* of a process given as matrices, likewise; zero: a GPU computes it, and it was not measured */
};

struct hk_config {
  uint32_t backend;              /* enum hk_backend_choice */
  uint32_t on_device_failure;    /* enum hk_device_failure; once read it is not auto */
  uint32_t log_level;            /* enum hk_level */
  uint32_t threads;              /* of the cpu backend; 0 = one for each core */
  uint32_t loops;                /* event loops; 0 = by cores */
  uint32_t devices;              /* GPUs; 0 = all */
  uint32_t max_sensors;          /* 1..16,777,215 */
  uint32_t max_sensors_per_peer; /* created by one owner (sensors/owners.h); 0 = any */
  uint32_t max_connections;      /* over TCP, all listeners together */
  uint32_t max_connections_per_address;
  uint32_t max_newcomers;      /* of one address, not authenticated yet; 0 = any */
  uint32_t max_failures;       /* failures of one address to authenticate, per minute; 0 = any */
  uint32_t max_subscriptions;  /* different ones at one time */
  uint32_t max_feeds_per_peer; /* named feeds of one owner (durable/named_feeds.h); 0 = any */
  int64_t feed_expiry;         /* ns after which a feed without a connection, and committed completely, is forgotten; 0 = never */
  uint32_t max_pending;        /* unscored points of one connection, above which no more is read from it */
  uint32_t backlog;            /* unscored points of all connections; memory for as many is reserved */
  uint64_t memory;             /* limit for the memory of sensors on a device, bytes; 0 = none */
  uint64_t max_frame;          /* bytes */
  uint64_t max_line;           /* bytes */
  uint64_t queue;              /* bytes waiting for one subscriber */
  int64_t busy_poll;           /* ns that the threads of the hot path look for work before they sleep */
  int64_t device_timeout;      /* ns without a sign of life from a GPU that has work, after which it is lost; 0 = never */
  int64_t max_ahead;           /* ns that a point's time may lie in the future; 0 = any */
  int64_t evict;               /* ns of silence after which a sensor is forgotten; 0 = never */
  int64_t stale_alerts;        /* ns after a sensor was found silent, after which its alert is cleared; 0 = never */
  int64_t handshake;           /* ns within which a HELLO must arrive */
  int64_t idle;                /* ns without a byte after which a connection that feeds is closed; 0 = never */
  int64_t stuck;               /* ns without progress after which a subscriber that does not read is closed; 0 = never */
  int64_t keepalive;           /* ns of silence after which a peer is probed; 0 = never */
  int64_t drain;               /* maximum duration of the shutdown, ns */
  uint32_t durability;         /* enum hk_durability */
  char state[HK_CONFIG_PATH_MAX]; /* folder of the state; "": none, which only durability = none allows */
  int64_t snapshot;               /* ns from the end of one snapshot to the beginning of the next */
  int64_t journal_wait;           /* ns that results wait for a failing or slow disk, before durability is given up */
  uint64_t journal_segment;       /* size of a file of the journal */
  uint64_t event_log;             /* maximum size of the event log, bytes */
  uint64_t scores;                /* bytes of past scores that are kept in memory for HTTP; 0 = none */
  struct hk_config_listener *listeners;
  uint32_t n_listeners;
  struct hk_config_detector *detectors; /* the first that matches a sensor is its detector; companions follow theirs */
  uint32_t n_detectors;
  struct hk_config_group *groups; /* the first that matches a sensor is its group */
  uint32_t n_groups;
  struct hk_config_field *fields; /* the first that matches a sensor is its field */
  uint32_t n_fields;
  struct hk_maintenance_rule *maintenance;
  uint32_t n_maintenance;
  struct hk_incidents_sections incidents;
  struct hk_notify_rule *notify;
  uint32_t n_notify;
  struct hk_mqtt_rules mqtt;
  struct hk_pictures_rules pictures;
  struct hk_cluster_rule cluster;
  struct {
    uint32_t limit; /* alerts of a sensor within `within`, above which it flaps; 0 = any */
    int64_t within; /* ns */
  } flaps;
  /* Keys that are not given, or `auto`, and follow from keys that need a restart; listeners: the default ones. */
  struct {
    bool max_connections_per_address, on_device_failure, listeners;
  } follows;
};

/* Whether snapshots are made, for a restart or for another machine of a cluster. */
static inline bool hk_config_saves(const struct hk_config *config)
{
  return config->durability != HK_DURABILITY_NONE || config->cluster.state[0];
}

/* Called for each fault, with one line without its newline. */
typedef void hk_config_fault(void *arg, const char *message);

/* Sets the keys named in `follows` by those of `from`: the same configuration, or the running one, whose keys that need a restart
 * stay. Thread: any. */
void hk_config_follow(struct hk_config *config, const struct hk_config *from);
/* Bytes of kept past scores: 0 without a listener of HTTP, which shows them. Thread: any. */
uint64_t hk_config_scores(const struct hk_config *config);
void hk_config_free(struct hk_config *config); /* may be called twice */

#endif
