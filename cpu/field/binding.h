/* Which members of a field the nodes of its graph are, or the sensors of its model: a member is bound to its neighbours as they
 * come, by name. Of a field that finds its neighbours itself it is nothing. The field remembers which node, or sensor, a member
 * is (hk_field_node). Thread: the field's. */
#ifndef HK_FIELD_BINDING_H
#define HK_FIELD_BINDING_H

#include "cpu/field/field.h"
#include "cpu/field/file.h"

struct hk_field_binding {
  struct hk_field_file file;
  uint32_t q;
  uint32_t *member; /* by node; HK_RESIDUAL_NONE: it is not there */
};

/* Reads the rule's file. All zero where it has none. 0, or a negative errno with a message. */
int hk_field_binding_open(struct hk_field_binding *out, const struct hk_field_rule *rule, char *error, size_t size);
/* The same, of a file that was read, with the members that a field has (NULL: none); takes a reference. 0 or -ENOMEM. */
int hk_field_binding_of(struct hk_field_binding *out, const struct hk_field_rule *rule, const struct hk_field_file *file,
                        const struct hk_field *field);
void hk_field_binding_close(struct hk_field_binding *binding);

/* A new member of the field has this name. hk_field_binding_leave: before a member leaves. */
void hk_field_binding_join(struct hk_field_binding *binding, struct hk_field *field, uint32_t member, const char *name,
                           size_t length);
void hk_field_binding_leave(struct hk_field_binding *binding, const struct hk_field *field, uint32_t member);
/* Whether a sensor of this name gets derived series: it has two neighbours in the graph, or finds its own, or is a check of the
 * model. */
bool hk_field_binding_has(const struct hk_field_binding *binding, const char *name, size_t length);

#endif
