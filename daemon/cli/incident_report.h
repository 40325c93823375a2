/* Prints the incidents of a recording, for `replay --budget`. Thread: one. */
#ifndef HK_INCIDENT_REPORT_H
#define HK_INCIDENT_REPORT_H

#include "cpu/rules/event.h"
#include "daemon/cli/recording.h"

struct hk_report;

struct hk_report_rules { /* zero-initialise */
  bool wanted;
  double a_day;     /* messages */
  int64_t interval; /* ns between points of a sensor; 0: from the first lines */
};

/* Parse an option: messages per day, as 10/day or 10; seconds. Return 0, or HK_EXIT_USAGE with a message. */
int hk_report_budget(char **argv, const char *text, struct hk_report_rules *rules);
int hk_report_interval(char **argv, const char *text, struct hk_report_rules *rules);

/* csv: has the sensors; it and argv must outlive *out. json: prints all changes of incidents as lines of JSON; else sentences
 * about reported incidents. Returns 0, or an exit code with a message. */
int hk_report_new(struct hk_report **out, char **argv, const struct hk_report_rules *rules, const struct hk_recordings *csv,
                  bool json);
void hk_report_free(struct hk_report *report); /* NULL is allowed */

/* Call for each line of the recording: determines the interval, which the first event needs. */
void hk_report_row(struct hk_report *report, int64_t time);
/* All points up to this time have scores. */
void hk_report_reach(struct hk_report *report, int64_t time);
/* Adds an event of a sensor. Returns 0 or -ENOMEM. */
int hk_report_event(struct hk_report *report, const char *sensor, const struct hk_event *event);
/* At the end of the recording: decides about the remaining events, and prints the number of incidents on standard error. */
void hk_report_finish(struct hk_report *report);

#endif
