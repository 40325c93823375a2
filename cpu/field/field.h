/* Field: a set of sensors, each of which gets a derived series: its value less the value expected from the others, by the graph
 * residual of many similar sensors (residual.h) or the model of a line of pipes (cpu/model/model.h); or the strength of a change
 * that travels along a line of sensors, as seen from its stretch of it (focus.h); or, without others, its value without spikes,
 * its running median (filter.h), its Hoelder exponent (hoelder.h) or the forecast of that (arma.h).
 *
 *   hk_field_new -> hk_field_attach or hk_field_attach_line -> hk_field_join, one for each member
 *    -> (hk_field_put, one point of a member; hk_field_next until it returns false)... -> hk_field_free
 *
 * Points are put into rows of one interval by the rules of a group (group.h): row k begins at k intervals, and contains of each
 * member its first value in it. A row is closed, and returned by hk_field_next, once every participating member has reached its
 * end, or once any member is `wait` rows ahead. A member that was silent for more than `wait` rows does not delay rows any more;
 * it participates, for the first time or again, from `wait` rows after its first point. Points of closed rows, and values that
 * are not finite or beyond 1e30, are ignored. So the output depends only on the members' points, not on how they are interleaved,
 * as long as no member is `wait` rows ahead of another one.
 *
 * hk_field_set_node makes a member of a model a sensor of its plan, and one of a focus a sensor of its line. Rows without any
 * point do not exist.
 *
 * Neighbours come from a graph, by the caller, who knows the names (hk_field_bind); or the field finds them itself
 * (HK_FIELD_AUTO): those with the greatest correlation with a member among the last HK_FIELD_RESIDENT rows. They are chosen when
 * the member has been settled for HK_RESIDUAL_SETTLE rows, for four times and for sixteen times as many; then the weights are
 * learned anew from these rows.
 *
 * Costs O(1) for each point and O(members * neighbours^2) for each row. A field is plain memory: the same points give the same
 * bits. Thread: the owner's; nothing here locks. */
#ifndef HK_FIELD_H
#define HK_FIELD_H

#include "cpu/field/correlate.h"
#include "cpu/field/offload.h"
#include "cpu/field/rule.h"

struct hk_field;

/* A closed row; valid until the next call. */
struct hk_field_row {
  uint32_t n;          /* node numbers are < n */
  const int64_t *time; /* ns, by node: time of its point in the row; of a focus, when a change seen now would have begun */
  const double *value; /* by node: the residual (residual.h), strength (focus.h) or what it is alone; NaN: none */
  int64_t latest;      /* ns: latest time of all these */
  uint32_t said, out;  /* number of residuals, and of those beyond clip times their mean error; of a filter: of spikes */
  uint32_t spikes;     /* of a filter: as `out`; else 0 */
  double own; /* value of the field's own series: out / said; of a focus with the greatest strength F: F / (F + threshold); of
                 hoelder and arma the mean of the values; NaN: none */
};

/* Creates a field. Returns 0 and *out; -EINVAL: the rule exceeds its limits; or -ENOMEM. */
int hk_field_new(struct hk_field **out, const struct hk_field_rule *rule);
void hk_field_free(struct hk_field *field); /* NULL is allowed */
/* Attaches the plan with the rule's mark to a field with operator = model, before the first point; takes a reference. place:
 * where it is computed. Returns 0, also for other operators; -EBADMSG: the state that the field was read from is not of this
 * plan; or an error of hk_model_new; with a message. Can be called again after an error. */
int hk_field_attach(struct hk_field *field, const struct hk_model_plan *plan, const struct hk_pipelines_place *place, char *error,
                    size_t size);
/* Gives a field with operator = focus the positions of its n sensors, by node, before the first point. Returns 0, also for other
 * operators; -EINVAL: the positions cannot be those of a line, or the state that the field was read from is of other ones;
 * -EBADMSG: that state is not valid; or -ENOMEM; with a message. Can be called again after an error. */
int hk_field_attach_line(struct hk_field *field, uint32_t n, const double *position, char *error, size_t size);
const struct hk_focus_line *hk_field_line_of(const struct hk_field *field); /* NULL: none */
/* The member at a sensor of the line in the last row; HK_RESIDUAL_NONE: none. */
uint32_t hk_field_member_at(const struct hk_field *field, uint32_t sensor);
const struct hk_model *hk_field_model_of(const struct hk_field *field); /* NULL: none */
/* Sets where the rows of a residual or a focus are computed from now on, initially on the host; the bits do not depend on it. */
void hk_field_compute_at(struct hk_field *field, const struct hk_field_place *place);
/* Approximate bytes of a field with `members` members. */
uint64_t hk_field_need(const struct hk_field_rule *rule, uint32_t members);

/* Adds a member without points and neighbours. Returns 0 and a free number; -ENOSPC: the maximum number of members is reached; or
 * -ENOMEM. */
int hk_field_join(struct hk_field *field, uint32_t *member);
/* Adds member `number`, which must be free and below rule.members. For a field that is read again. Returns 0 or
 * -ENOMEM. */
int hk_field_add(struct hk_field *field, uint32_t number);
/* Removes a member, also as neighbour of others; its number becomes free. Rows that waited for it may become complete: call
 * hk_field_next. */
void hk_field_leave(struct hk_field *field, uint32_t member);
uint32_t hk_field_members(const struct hk_field *field);
bool hk_field_has(const struct hk_field *field, uint32_t member); /* whether it is the number of a member */

/* Makes j neighbour k < q of member i, in a field that does not find neighbours itself. */
void hk_field_bind(struct hk_field *field, uint32_t i, uint32_t k, uint32_t j);
/* Neighbour k of member i; of a focus with k = 0 the member that is to blame since the last row; HK_RESIDUAL_NONE: none. */
uint32_t hk_field_neighbour(const struct hk_field *field, uint32_t i, uint32_t k);

/* Node of the graph, or sensor of the plan or line, of a member, for binding.h; HK_RESIDUAL_NONE: none, the initial value.
 * hk_field_top: member numbers are below it. */
uint32_t hk_field_node(const struct hk_field *field, uint32_t member);
void hk_field_set_node(struct hk_field *field, uint32_t member, uint32_t node);
uint32_t hk_field_top(const struct hk_field *field);

/* Adds a point of a member. Call hk_field_next until it returns false before adding the next point. */
void hk_field_put(struct hk_field *field, uint32_t member, int64_t time, double value);
/* Returns true and *row, the next row that can be closed; or false. */
bool hk_field_next(struct hk_field *field, struct hk_field_row *row);

#endif
