/* Question: what machines of a cluster ask each other about their sensors, as JSON: the body of a letter (bridge/letter.h).
 *
 *     {"ask":"sensor","name":NAME,"scores":N}
 *     {"ask":"names","from":SLOT}
 *     {"ask":"progress","silence":MS}
 *     {"ask":"sensors","glob":GLOB,"limit":N,"after":PLACE,...}        as /api/v1/sensors; or "groups", "lines"
 *
 * Thread: any. */
#ifndef HK_QUESTION_H
#define HK_QUESTION_H

#include "daemon/base/buffer.h"
#include "daemon/web/web_source.h"
#include "proto/wire/name.h"

#include <stdbool.h>
#include <stddef.h>

struct hk_question {
  char name[HK_NAME_MAX + 1]; /* "": names, progress, or a list */
  uint32_t scores;
  bool names;                    /* the names of sensors, */
  uint32_t from;                 /* from this slot on */
  bool progress;                 /* how far the data are, */
  uint32_t silence;              /* without shards that have had none for so long, ms */
  struct hk_web_sensors sensors; /* its glob is to be freed */
};

void hk_question_write_look(struct hk_buffer *out, const char *name, uint32_t scores);
void hk_question_write_names(struct hk_buffer *out, uint32_t from);
void hk_question_write_progress(struct hk_buffer *out, uint32_t silence);
void hk_question_write_list(struct hk_buffer *out, const struct hk_web_sensors *asked);
/* Reads a question; lists are of rows. False: it is none. To free in either case. */
bool hk_question_read(const char *text, size_t size, struct hk_question *out);
void hk_question_free(struct hk_question *question);

#endif
