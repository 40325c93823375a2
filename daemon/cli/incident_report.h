/* Incidents of a recording, as `replay --budget` prints them. Thread: one. */
#ifndef HK_INCIDENT_REPORT_H
#define HK_INCIDENT_REPORT_H

#include "cpu/rules/alert.h"
#include "daemon/cli/recording.h"

struct hk_report;

struct hk_report_rules { /* null initialiser: all zero */
  bool wanted;
  double a_day;     /* messages */
  int64_t interval; /* ns between points of a sensor; 0: as the first lines have it */
};

/* Take an option: messages a day, as 10/day or 10; seconds. 0, or HK_EXIT_USAGE with a message. */
int hk_report_budget(char **argv, const char *text, struct hk_report_rules *rules);
int hk_report_interval(char **argv, const char *text, struct hk_report_rules *rules);

/* The sensors are those of csv, which outlives it, as argv does. json: lines of JSON, all incidents; else sentences about those
 * that are told. 0, or an exit code with a message. */
int hk_report_new(struct hk_report **out, char **argv, const struct hk_report_rules *rules, const struct hk_recordings *csv,
                  bool json);
void hk_report_free(struct hk_report *report); /* NULL is allowed */

/* A line of the recording was read: by these it learns the interval, which it needs with the first event. */
void hk_report_row(struct hk_report *report, int64_t time);
/* Points of this time are scored, and so are all of times before. */
void hk_report_reach(struct hk_report *report, int64_t time);
/* An event of a sensor. 0 or -ENOMEM. */
int hk_report_event(struct hk_report *report, const char *sensor, const struct hk_event *event);
/* The end of the recording: judges what is left, and says on standard error how many there were. */
void hk_report_finish(struct hk_report *report);

#endif
