/* How results and events are printed, by `replay` and `tail` alike. Everything goes to a stdio stream; the caller looks at
 * ferror once in a while. Thread: the stream's. */
#ifndef HK_FORMAT_H
#define HK_FORMAT_H

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

/* An event or a notice, ready to print: kind is enum hankel_event_kind. */
struct hk_shown_event {
  const char *sensor;
  uint32_t number;
  uint8_t kind;
  int64_t time, from, instant;
  float score;
  double before, after;
  uint64_t position, sequence; /* 0: not shown */
  float confidence, margin;    /* this and what follows but for CSV, whose columns are fixed */
  float spread_before, spread_after;
  uint8_t channel, marks; /* enum hankel_channel, hankel_mark */
  uint32_t held;
  const char *by; /* who acknowledged; "": that is not what it is about */
};

/* What a further algorithm says of the same point. */
struct hk_shown_further {
  const char *algorithm;
  float score; /* as above */
  uint8_t state;
};

/* First line of CSV: sensor,time[,value],score,state, and score_graph,state_graph for further algorithms, n of them, whose scores and
 * states do not matter. Nothing for the other formats. */
void hk_print_header(FILE *out, enum hk_format format, bool has_value, const struct hk_shown_further *further, uint32_t n);
/* Text has no further algorithms. */
void hk_print_result(FILE *out, enum hk_format format, const struct hk_shown_result *result, const struct hk_shown_further *further,
                     uint32_t n);
void hk_print_event(FILE *out, enum hk_format format, const struct hk_shown_event *event);

/* A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD. */
void hk_print_json_string(FILE *out, const char *text);

/* The shortest decimal number that reads back as value; "nan", "inf", "-inf". out: 32 bytes. */
void hk_number_text(double value, char *out);

#endif
