/* INCIDENT: a change of an incident. One reader and one writer, as in message.h. */
#ifndef HK_INCIDENT_MESSAGE_H
#define HK_INCIDENT_MESSAGE_H

#include "proto/hankel.h"
#include "proto/wire/payload.h"

struct hk_incident_message {
  uint64_t position, id, into;
  int64_t time, since;
  double rank, severity;
  uint32_t count;
  uint8_t kind;           /* enum hankel_incident_kind */
  uint8_t told;           /* 0 or 1 */
  struct hk_string text;  /* at most 65,535 bytes */
  struct hk_string about; /* takes the rest of the frame */
};
#define HK_INCIDENT_BYTES 64u /* without the strings */

int hk_incident_write(struct hk_writer *w, const struct hk_incident_message *m);
int hk_incident_read(const struct hk_frame *f, struct hk_incident_message *m);

#endif
