/* Maps the nodes of a field's graph, or the sensors of its model, to members: binds each joining member to its neighbours, by
 * name. Empty for a field that finds neighbours itself. The field stores the node, or sensor, of each member (hk_field_node).
 * Thread: the field's. */
#ifndef HK_FIELD_BINDING_H
#define HK_FIELD_BINDING_H

#include "cpu/field/field.h"
#include "cpu/field/file.h"

struct hk_field_binding {
  struct hk_field_file file;
  uint32_t q;
  uint32_t *member; /* by node; HK_RESIDUAL_NONE: not a member */
};

/* Reads the rule's file; all zero if it has none. Returns 0, or a negative errno with a message. */
int hk_field_binding_open(struct hk_field_binding *out, const struct hk_field_rule *rule, char *error, size_t size);
/* The same with a file already read, to which it takes a reference, and the members of a field (NULL: none). Returns 0 or
 * -ENOMEM. */
int hk_field_binding_of(struct hk_field_binding *out, const struct hk_field_rule *rule, const struct hk_field_file *file,
                        const struct hk_field *field);
void hk_field_binding_close(struct hk_field_binding *binding);

/* Binds a new member of the field with this name. Call hk_field_binding_leave before a member leaves. */
void hk_field_binding_join(struct hk_field_binding *binding, struct hk_field *field, uint32_t member, const char *name,
                           size_t length);
void hk_field_binding_leave(struct hk_field_binding *binding, const struct hk_field *field, uint32_t member);
/* Whether a sensor of this name gets a derived series: it has two neighbours in the graph, finds its own, is a check of the
 * model, or has a position on the line. */
bool hk_field_binding_has(const struct hk_field_binding *binding, const char *name, size_t length);

#endif
