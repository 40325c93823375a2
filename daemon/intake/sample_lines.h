/* Lines of the line protocol made of samples in other formats, so that their sensors are named as those of lines: the metric's
 * name is the measurement and each label a tag, in order of arrival.
 *
 * There is a line for each sample, so that line n of the daemon's answer is sample n: a sample without a number is an empty
 * comment. */
#ifndef HK_SAMPLE_LINES_H
#define HK_SAMPLE_LINES_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stdint.h>

#define HK_SAMPLE_LINES (64u << 20) /* bytes of the lines of a request, at most */
#define HK_SAMPLE_FAULTS 8u         /* that are reported, of those that are counted */

/* Samples that become no line. Zero-initialise. */
struct hk_sample_faults {
  uint64_t refused;
  uint32_t n; /* the first of these */
  struct hk_sample_fault {
    uint64_t line;
    const char *why; /* lives for ever */
  } fault[HK_SAMPLE_FAULTS];
};

struct hk_sample_lines {
  struct hk_buffer *out;
  struct hk_sample_faults *faults;
  struct hk_buffer key; /* of the series: measurement and tags */
  const char *wrong;    /* with the series; NULL: nothing */
  uint64_t n;           /* lines */
};

void hk_sample_lines_free(struct hk_sample_lines *l); /* not out */
/* Begins a series. */
void hk_sample_lines_name(struct hk_sample_lines *l, const char *name, size_t length);
/* Adds a label; one without a value is as good as none. */
void hk_sample_lines_label(struct hk_sample_lines *l, const char *name, size_t name_length, const char *value, size_t length);
/* Adds a sample of the series: a field and, not NULL, another one named `count`. time: in whatever unit. What is no number is
 * left out; where nothing else is there it becomes an empty comment. False: there is no room for it, or no memory. */
bool hk_sample_lines_add(struct hk_sample_lines *l, const double *count, const char *field, double value, int64_t time);
/* A sample that is not taken: NULL, quietly. As above. */
bool hk_sample_lines_refuse(struct hk_sample_lines *l, const char *why);

/* Appends text so that it ends nothing in a line: each byte of `special` gets a backslash. A byte that cannot stand in a name at
 * all becomes one for which the line is refused, but ends no line. A backslash at the end would take what follows for its own; as
 * Telegraf does it is left out. */
void hk_sample_lines_escape(struct hk_buffer *out, const char *text, size_t length, const char *special);

#endif
