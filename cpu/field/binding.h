/* Which members of a field the nodes of its graph are: a member is bound to its neighbours as they come, by name. Of a field that
 * finds its neighbours itself it is nothing. Thread: the field's. */
#ifndef HK_FIELD_BINDING_H
#define HK_FIELD_BINDING_H

#include "cpu/field/field.h"
#include "cpu/field/graph.h"

struct hk_field_binding {
  struct hk_field_graph *graph; /* NULL: none */
  uint32_t q;
  uint32_t *member; /* by node; HK_RESIDUAL_NONE: it is not there */
  uint32_t *node;   /* by member: n of them */
  uint32_t n;
};

/* Reads the rule's file. All zero where it has none. 0, or a negative errno with a message. */
int hk_field_binding_open(struct hk_field_binding *out, const struct hk_field_rule *rule, char *error, size_t size);
/* The same, of a graph that was read; takes a reference. NULL: none. 0 or -ENOMEM. */
int hk_field_binding_of(struct hk_field_binding *out, const struct hk_field_rule *rule, struct hk_field_graph *graph);
void hk_field_binding_close(struct hk_field_binding *binding);

/* A member of the field has this name. One that it was told of before, with the same neighbours, keeps what it has learned of
 * them. 0 or -ENOMEM. hk_field_binding_leave: a member leaves, or has left. */
int hk_field_binding_join(struct hk_field_binding *binding, struct hk_field *field, uint32_t member, const char *name,
                          size_t length);
void hk_field_binding_leave(struct hk_field_binding *binding, uint32_t member);

#endif
