/* Field: sensors each of which gets a derived series that says how it differs from what the others let expect. The operator is
 * the graph residual of many like sensors (residual.h), or the model of a line of pipes (cpu/model/model.h).
 *
 *   hk_field_new -> hk_field_attach, of a model -> hk_field_join, one for each member -> (hk_field_put, one point of a member;
 * hk_field_next until it gives no more)... -> hk_field_free
 *
 * Points are put into rows of one interval as a group's are (group.h), by the same rules: row k holds the times from k intervals
 * on, and of a member the first value that falls into it. A row is closed, and given out by hk_field_next, once every member that
 * takes part has come as far, or once any member is `wait` rows ahead of it. A member that was silent for more than `wait` rows
 * does not hold rows up any more; it takes part, for the first time or again, from `wait` rows behind its first point on. Points
 * of rows that are closed, and values that are not finite or beyond 1e30, count for nothing. So what comes out depends only on
 * the members' points, not on how they are mixed, as long as no member is `wait` rows ahead of another one.
 *
 * A model's members are sensors of its plan by hk_field_set_node, or none. Rows in which nobody has a point do not come.
 *
 * Neighbours: from a graph, by the caller, who knows the names (hk_field_bind); or by the field itself (HK_FIELD_AUTO): those
 * rows before with which a member's values are correlated most, among the last HK_FIELD_RESIDENT rows, chosen when it has been
 * settled for HK_RESIDUAL_SETTLE rows, for four times and sixteen times as many; what was learned is learned anew from these
 * rows.
 *
 * Costs O(1) a point and O(members * neighbours^2) a row. A field is plain memory: the same points give the same bits. Thread:
 * whoever owns it; nothing here locks. */
#ifndef HK_FIELD_H
#define HK_FIELD_H

#include "cpu/field/offload.h"
#include "cpu/field/rule.h"

#define HK_FIELD_RESIDENT 512u /* rows that are kept for that */

struct hk_field;

/* A row that was closed, until the next call. */
struct hk_field_row {
  uint32_t n;          /* nodes are below */
  const int64_t *time; /* ns, by node: of its point in the row */
  const double *value; /* by node: the residual (residual.h); NaN: there is none */
  int64_t latest;      /* ns: of all points in the row */
  uint32_t said, out;  /* residuals that there are; and of these beyond clip times their mean error */
};

/* 0 and *out, -EINVAL: the rule is out of its limits, or -ENOMEM. */
int hk_field_new(struct hk_field **out, const struct hk_field_rule *rule);
void hk_field_free(struct hk_field *field); /* NULL is allowed */
/* Of operator = model: the plan of the rule's mark, before the first point; takes a reference. place: where it is computed. 0,
 * also of a field of another operator; -EBADMSG: the state that the field was read from is none of this plan; or what
 * hk_model_new says; with a message. It can be asked again. */
int hk_field_attach(struct hk_field *field, const struct hk_model_plan *plan, const struct hk_pipelines_place *place, char *error,
                    size_t size);
const struct hk_model *hk_field_model_of(const struct hk_field *field); /* NULL: there is none */
/* Where residuals are computed from now on; the bits do not depend on it. At first on the host. */
void hk_field_compute_at(struct hk_field *field, const struct hk_field_place *place);
/* Bytes of a field of so many members, more or less. */
uint64_t hk_field_need(const struct hk_field_rule *rule, uint32_t members);

/* One more member, with no points so far and no neighbours. 0 and its number, which is free, -ENOSPC: there are as many as may
 * be, or -ENOMEM. */
int hk_field_join(struct hk_field *field, uint32_t *member);
/* A member goes, and is nobody's neighbour any more; its number is free. Rows that waited for it can be given out. */
void hk_field_leave(struct hk_field *field, uint32_t member);
uint32_t hk_field_members(const struct hk_field *field);
bool hk_field_has(const struct hk_field *field, uint32_t member); /* whether that is one's number */

/* Of a field that does not find neighbours itself: member i gets j as its neighbour k < q. */
void hk_field_bind(struct hk_field *field, uint32_t i, uint32_t k, uint32_t j);
/* Neighbour k of member i; HK_RESIDUAL_NONE: it has none. */
uint32_t hk_field_neighbour(const struct hk_field *field, uint32_t i, uint32_t k);

/* Which node of a graph, or sensor of a plan, a member is, for whoever binds it (binding.h); HK_RESIDUAL_NONE: none, as at first.
 * hk_field_top: numbers of members are below. */
uint32_t hk_field_node(const struct hk_field *field, uint32_t member);
void hk_field_set_node(struct hk_field *field, uint32_t member, uint32_t node);
uint32_t hk_field_top(const struct hk_field *field);

/* What came of the members. */
struct hk_field_count {
  uint32_t settled;   /* have a mean and a spread */
  uint32_t explained; /* have a prediction; checks of a model that have said something */
  uint64_t refused;   /* refits of all that are members */
};
struct hk_field_count hk_field_count(const struct hk_field *field);

/* Takes a point of a member. Ask hk_field_next for all that it gives before the next one is put. */
void hk_field_put(struct hk_field *field, uint32_t member, int64_t time, double value);
/* True and *row: the next row that can be closed. */
bool hk_field_next(struct hk_field *field, struct hk_field_row *row);

#endif
