/* Prints results and events for `replay` and `tail` to a stdio stream. The caller checks ferror from time to time. Thread: the
 * stream's. */
#ifndef HK_FORMAT_H
#define HK_FORMAT_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum hk_format { HK_FORMAT_TEXT, HK_FORMAT_JSONL, HK_FORMAT_CSV };

/* A result to print. */
struct hk_shown_result {
  const char *sensor;
  int64_t time;
  bool has_value;
  double value;
  float score;   /* NaN: none */
  uint8_t state; /* 0..5: warming ok gap late rejected provisional */
};

/* The result of a further algorithm for the same point. */
struct hk_shown_further {
  const char *algorithm;
  float score; /* as above */
  uint8_t state;
};

/* Prints the header of CSV: sensor,time[,value],score,state, then score_graph,state_graph and so on for n further algorithms, of
 * which only the names are used. Prints nothing for other formats. */
void hk_print_header(FILE *out, enum hk_format format, bool has_value, const struct hk_shown_further *further, uint32_t n);
/* Prints a result; as text without further algorithms. */
void hk_print_result(FILE *out, enum hk_format format, const struct hk_shown_result *result,
                     const struct hk_shown_further *further, uint32_t n);
/* Prints an event or a notice. Omits position and sequence if position is 0. CSV has fixed columns and omits details, except that
 * a line #novelty follows with what is new, and a line #limit with the time at which a limit is reached. */
void hk_print_event(FILE *out, enum hk_format format, const struct hankel_event *event);

/* Prints a change of an incident: as a sentence, a JSON object, or a line
 * #incident,id,kind,time,rank,severity,sensors,into,position,"sentence". */
void hk_print_incident(FILE *out, enum hk_format format, const struct hankel_incident *incident);

/* Prints a quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void hk_print_json_string(FILE *out, const char *text);
/* Prints a quoted CSV cell; quotes within it are doubled. */
void hk_print_csv_string(FILE *out, const char *text);
/* Prints a name on a terminal; control characters and characters that change the direction of text become `?` or `<U+202E>`. */
void hk_print_name(FILE *out, const char *name);

/* Formats the shortest decimal number that parses to the same value; or "nan", "inf", "-inf". out: 32 bytes. */
void hk_number_text(double value, char *out);

#endif
