/* Makes points of derived sensors from the points of a field's members.
 *
 *     next chunk: hk_fields_look: finds its sensors' fields, adds members, makes missing derived series
 *     derive:     hk_fields_put a member's point -> rows -> hk_fields_make points of the derived sensors, up to `room`
 *
 * Fields are kept as groups are (groups.h: members, journal, snapshots, reload), in an hk_groups of their own, so a sensor may be
 * in both. Each member has SENSOR#residual (of a model: SENSOR#model, of a focus: SENSOR#focus), and SENSOR#residual.ALGORITHM
 * for each further algorithm of the field's detector. These are like other sensors, except for the origin of their points. The
 * field's own series, NAME#field or NAME#CAPTURE, has for each row the share of its sensors that behave unusually; of a focus
 * (SENSOR#focus) the score of the strongest change on the line, and alerts like a group's series when one is found. Thread: as
 * groups.h. */
#ifndef HK_FIELD_ROWS_H
#define HK_FIELD_ROWS_H

#include "cpu/model/profile.h"
#include "daemon/scoring/groups.h"

/* The next chunk is about to be journaled: as hk_groups_look; also makes derived sensors that members lack. */
void hk_fields_look(struct hk_groups *fields, const struct hk_chunk *chunk);

/* Takes point i of a chunk. Call hk_fields_make for all points derived from it before the next hk_fields_put. */
void hk_fields_put(struct hk_groups *fields, const struct hk_chunk *from, uint32_t i);
/* As hk_fields_put, for a point of the journal. */
void hk_fields_replay(struct hk_groups *fields, const struct hk_groups_replayed *point);
/* Writes derived points to the columns, from place *at on and below `room`, which is at least *at plus HK_ALGORITHMS; slots are
 * within the shard, or of the registry during replay of a journal. True: all are written. */
bool hk_fields_make(struct hk_groups *fields, const struct hk_columns *to, uint32_t *at, uint32_t room);

/* hk_fields_leaving: a sensor is about to be evicted. hk_fields_review: it leaves its field if it belongs to another one now.
 * Lists its derived sensors, and the field's own series if it was the last member: up to HK_ALGORITHMS + 1 slots of the registry,
 * to be evicted, too. Returns their number. */
uint32_t hk_fields_leaving(struct hk_groups *fields, uint32_t slot, uint32_t *list);
uint32_t hk_fields_review(struct hk_groups *fields, uint32_t slot, uint32_t *list);

/* A batch of points came back: marks alerts of derived sensors for which another sensor is to blame HANKEL_SECONDARY. To call
 * before other uses of the batch. */
void hk_fields_mark(struct hk_groups *fields, struct hk_delivery *delivery);
/* The sensor to blame for an alert of a derived sensor with this value: the name of its derived sensor; empty: no other one.
 * Valid while the registry is being read. */
struct hk_string hk_fields_blamed(const struct hk_groups *fields, uint32_t within, double value, char name[HK_NAME_MAX]);
/* The sensor of a focus that is nearest to a position; empty: `within` is not the own series of such a field. Valid while the
 * registry is being read. */
struct hk_string hk_fields_nearest(const struct hk_groups *fields, uint32_t within, double position, char name[HK_NAME_MAX]);
/* The share of a sensor's behaviour that its line's model explains (hk_model_explains), at most 1; NaN: it is no check of a
 * model, or the model has no result for it yet. within: its slot. */
double hk_fields_explains(const struct hk_groups *fields, uint32_t within);
/* The profile of a line of the model whose series has this slot; the caller's. NULL: there is no such line, or no memory. */
struct hk_profile *hk_fields_profile(const struct hk_groups *fields, uint32_t within, uint32_t line);

#endif
