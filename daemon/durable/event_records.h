/* Records of the event log: their contents, and writing and reading of payloads. FORMAT.md describes the bytes.
 *
 * Four types. An event of a sensor; a change of an incident; a settled record: the incidents of the events up to a position, and
 * what is needed to repeat the decisions of a section from the log alone; and an operation: maintenance and reloads.
 *
 * Pure functions. A reader's results point into the payload. Thread: any. */
#ifndef HK_EVENT_RECORDS_H
#define HK_EVENT_RECORDS_H

#include "cpu/rules/event.h"
#include "proto/hankel.h"
#include "proto/wire/message.h"

enum hk_log_record { HK_RECORD_EVENT = 1, HK_RECORD_INCIDENT = 2, HK_RECORD_SETTLED = 3, HK_RECORD_OPERATION = 4 };

/* A logged event. */
struct hk_logged {
  uint64_t position;
  bool unsure;           /* the position may be another event's after a crash (hk_journal_sure): it is not sent to peers */
  uint64_t sequence;     /* of the sensor: counts its events */
  uint32_t handle;       /* of the sensor then: the name may be another sensor later, whose sequence begins with 1 again */
  struct hk_string name; /* of the sensor */
  struct hk_string by;   /* acknowledged: by whom; otherwise "" */
  struct hk_event event; /* index and slot are meaningless */
  int64_t reached;       /* ns, time of data: how far the data of other sensors were already when it was logged; 0: no further */
  uint64_t incident;     /* of the event; 0: none, or not known yet. Not in this record: a later one has it */
};

#define HK_SECTION_MOST 63u
/* A change of an incident. */
struct hk_logged_incident {
  uint64_t position;
  bool unsure;     /* as of an event */
  uint64_t number; /* number of the change among all logged changes of its section */
  uint64_t id;
  uint64_t into;            /* merged: the other incident; otherwise 0 */
  int64_t time, since;      /* ns, time of data: of this decision, and of its first event */
  double rank, severity;    /* as judged; the greatest of its events */
  uint32_t count;           /* number of sensors */
  uint8_t kind;             /* enum hankel_incident_kind */
  bool told;                /* it was within the budget */
  struct hk_string section; /* of [incidents NAME]; "": [incidents]. At most HK_SECTION_MOST bytes */
  struct hk_string text;    /* for people */
  struct hk_string about;   /* an object of JSON, for programs */
  struct hk_string sensors; /* names of the listed sensors, each ends with 0 */
};

struct hk_settled_event {
  uint64_t position, incident;
};
/* All events of a section with times before `time` that stand up to the position `seen` are judged; and so are all events, of any
 * section, up to `upto`. */
struct hk_logged_settled {
  uint64_t seen, upto; /* upto <= seen */
  int64_t time;        /* ns, time of data; INT64_MIN: the record has only incidents of events, too many for one record */
  uint64_t number, id; /* of the last logged change, and of the last incident that began, before this */
  double a_day;        /* the budget */
  uint32_t sensors;    /* number of scored sensors */
  uint32_t n;
  const uint8_t *events;    /* n of struct hk_settled_event, not aligned; by position */
  struct hk_string section; /* as of a change */
};
static inline struct hk_settled_event hk_settled_at(const struct hk_logged_settled *settled, uint32_t i)
{
  struct hk_settled_event event;
  memcpy(&event, settled->events + (size_t)i * sizeof event, sizeof event);
  return event;
}

/* An operator's action, other than those on an event (acknowledged) or an incident (expected, false, undone). */
enum hk_operation_kind {
  HK_LOGGED_MAINTENANCE = 1,
  HK_LOGGED_MAINTENANCE_END = 2,
  HK_LOGGED_RELOAD = 3,
  HK_LOGGED_RELOAD_REFUSED = 4
};
#define HK_OPERATION_TEXT 1024u /* maximum bytes of each string */
struct hk_logged_operation {
  uint64_t position;
  bool unsure;              /* as of an event */
  int64_t time;             /* ns, of the daemon's clock */
  int64_t until;            /* maintenance: its scheduled end; INT64_MAX: none. Else 0 */
  uint32_t kind;            /* enum hk_operation_kind */
  struct hk_string subject; /* maintenance: the glob; else "" */
  struct hk_string by;      /* by whom; "": unknown */
  struct hk_string text;    /* reload: its report */
};

/* Length of the payload of an event (name, by: at most HK_NAME_MAX and HK_WHO_MAX bytes), a change, a settled record and an
 * operation. Writers write that many bytes. */
size_t hk_logged_size(const struct hk_logged *logged);
void hk_logged_write(const struct hk_logged *logged, uint8_t *payload);
size_t hk_logged_incident_size(const struct hk_logged_incident *incident);
void hk_logged_incident_write(const struct hk_logged_incident *incident, uint8_t *payload);
size_t hk_logged_settled_size(const struct hk_logged_settled *settled);
void hk_logged_settled_write(const struct hk_logged_settled *settled, uint8_t *payload);
size_t hk_logged_operation_size(const struct hk_logged_operation *operation);
void hk_logged_operation_write(const struct hk_logged_operation *operation, uint8_t *payload);

/* Parse a payload that was valid when it was read. */
void hk_logged_view(const uint8_t *payload, struct hk_logged *out);
void hk_logged_incident_view(const uint8_t *payload, struct hk_logged_incident *out);
void hk_logged_operation_view(const uint8_t *payload, struct hk_logged_operation *out);
/* Check and parse a payload; the caller sets positions. False: invalid. */
bool hk_logged_read(const uint8_t *payload, size_t size, struct hk_logged *out);
bool hk_logged_incident_read(const uint8_t *payload, size_t size, struct hk_logged_incident *out);
bool hk_logged_settled_read(const uint8_t *payload, size_t size, struct hk_logged_settled *out);
bool hk_logged_operation_read(const uint8_t *payload, size_t size, struct hk_logged_operation *out);

/* Whether a payload is one of its type, an enum hk_log_record. */
bool hk_log_record_valid(uint32_t type, const uint8_t *payload, size_t size);

/* Minimum and maximum bytes of an event's payload. */
#define HK_LOGGED_LEAST 104u
#define HK_LOGGED_MOST (HK_LOGGED_LEAST + HK_NAME_MAX + HK_WHO_MAX + sizeof(struct hk_novelty_note) + sizeof(int64_t))
#define HK_SETTLED_LEAST 56u
/* Maximum bytes of all texts of an incident together. */
#define HK_LOGGED_INCIDENT_MOST (1u << 18)

/* Whether events of a kind are logged. */
bool hk_eventlog_takes(uint8_t kind);

#endif
