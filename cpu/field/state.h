/* The state of a field as bytes. */
#ifndef HK_FIELD_STATE_H
#define HK_FIELD_STATE_H

#include "cpu/field/field.h"

/* Writes and reads the complete state of a field, in memory aligned to 8 bytes; a field that was read continues exactly, bit for
 * bit. Call hk_field_write only when hk_field_next has returned all rows. FORMAT.md has the layout. hk_field_state_size: bytes
 * that hk_field_write writes, a multiple of 8. */
size_t hk_field_state_size(const struct hk_field *field);
void hk_field_write(const struct hk_field *field, void *state);
/* Creates a field from a state, with the same member numbers. rule: the rule to continue with; refit, blame, members, forget and
 * clip may differ from those of the state. Returns 0 and *out; -EBADMSG: not a valid state; -EINVAL: the state has other rows,
 * neighbours or another file than the rule, more members, or the layout of another version; or -ENOMEM. hk_field_attach checks
 * the state of a model, hk_field_attach_line that of a focus. */
int hk_field_read(struct hk_field **out, const struct hk_field_rule *rule, const void *state, size_t size);

#endif
