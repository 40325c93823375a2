/* Makes points of derived sensors from the points of a field's members.
 *
 *     next chunk: hk_fields_look: its sensors are found or made members of fields, whose series are made, and each member's own
 *     derive:     hk_fields_put a member's point -> rows -> hk_fields_make points of the derived sensors, as many as there is
 * room for
 *
 * Fields are kept as groups are (groups.h: members, journal, snapshots, reload), in an hk_groups of their own, so a sensor may be
 * of both. Of each member there is SENSOR#residual (of a model SENSOR#model), and SENSOR#residual.ALGORITHM for each
 * further algorithm of the field's detector, which are like other sensors, except for the origin of their points. The field's own
 * series, NAME#field or NAME#CAPTURE, has for each row the share of its sensors that behave unusually. Thread: as groups.h. */
#ifndef HK_FIELD_ROWS_H
#define HK_FIELD_ROWS_H

#include "daemon/scoring/groups.h"

/* The next chunk is about to be journaled: as hk_groups_look, and derived sensors that members lack are made. */
void hk_fields_look(struct hk_groups *fields, const struct hk_chunk *chunk);

/* Takes point i of a chunk. Ask hk_fields_make for all that comes of it before the next one is put. */
void hk_fields_put(struct hk_groups *fields, const struct hk_chunk *from, uint32_t i);
/* The same of a point of the journal. */
void hk_fields_replay(struct hk_groups *fields, const struct hk_groups_replayed *point);
/* Writes derived points to the columns, from place *at on and below `room`, which is at least *at plus HK_ALGORITHMS; slots are
 * within the shard, or of the registry while a journal is replayed. True: all are written. */
bool hk_fields_make(struct hk_groups *fields, const struct hk_columns *to, uint32_t *at, uint32_t room);

/* A sensor is on its way out, or (review) leaves its field if it is another one's now. Its derived sensors, and the field's own
 * series where it was the last member, are to go, too: up to HK_ALGORITHMS + 1 slots of the registry. Returns how many. */
uint32_t hk_fields_leaving(struct hk_groups *fields, uint32_t slot, uint32_t *list);
uint32_t hk_fields_review(struct hk_groups *fields, uint32_t slot, uint32_t *list);

/* A batch of points came back: alerts of derived sensors that another one is to blame for are marked HANKEL_SECONDARY. Before
 * anything else looks at it. */
void hk_fields_mark(struct hk_groups *fields, struct hk_delivery *delivery);
/* The sensor to blame for an alert of a derived sensor with this value: the name of its derived sensor; empty: no other. Valid
 * while the registry is being read. */
struct hk_string hk_fields_blamed(const struct hk_groups *fields, uint32_t within, double value, char name[HK_NAME_MAX]);
/* How much of what a sensor does its line's model explains (hk_model_explains), at most 1; NaN: it is no check of a model, or the
 * model has said nothing of it yet. within: its slot. */
double hk_fields_explains(const struct hk_groups *fields, uint32_t within);

#endif
