/* How results and events are printed, by `replay` and `tail` alike. Everything goes to a stdio stream; the caller looks at
 * ferror once in a while. Thread: the stream's. */
#ifndef HK_FORMAT_H
#define HK_FORMAT_H

#include "proto/hankel.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum hk_format { HK_FORMAT_TEXT, HK_FORMAT_JSONL, HK_FORMAT_CSV };

/* A result, ready to print. */
struct hk_shown_result {
  const char *sensor;
  int64_t time;
  bool has_value;
  double value;
  float score;   /* NaN: none */
  uint8_t state; /* 0..4: warming ok gap late rejected */
};

/* What a further algorithm says of the same point. */
struct hk_shown_further {
  const char *algorithm;
  float score; /* as above */
  uint8_t state;
};

/* First line of CSV: sensor,time[,value],score,state, and score_graph,state_graph for further algorithms, n of them, whose scores
 * and states do not matter. Nothing for the other formats. */
void hk_print_header(FILE *out, enum hk_format format, bool has_value, const struct hk_shown_further *further, uint32_t n);
/* Text has no further algorithms. */
void hk_print_result(FILE *out, enum hk_format format, const struct hk_shown_result *result,
                     const struct hk_shown_further *further, uint32_t n);
/* An event or a notice. Position and sequence are not shown where position is 0; what details say is not shown in CSV, whose
 * columns are fixed; what is new, of the channel novelty, has a line of its own there, #novelty, and when a limit is reached,
 * #limit. */
void hk_print_event(FILE *out, enum hk_format format, const struct hankel_event *event);

/* What became of an incident: the sentence; its object of JSON;
 * #incident,id,kind,time,rank,severity,sensors,into,position,"sentence". */
void hk_print_incident(FILE *out, enum hk_format format, const struct hankel_incident *incident);

/* A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void hk_print_json_string(FILE *out, const char *text);
/* A CSV cell in quotes, those within it doubled. */
void hk_print_csv_string(FILE *out, const char *text);
/* A name for a terminal: a character that would act on it, or turn the text around it, becomes `?` or `<U+202E>`. */
void hk_print_name(FILE *out, const char *name);

/* The shortest decimal number that reads back as value; "nan", "inf", "-inf". out: 32 bytes. */
void hk_number_text(double value, char *out);

#endif
