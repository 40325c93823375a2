/* The state of a field as bytes. */
#ifndef HK_FIELD_STATE_H
#define HK_FIELD_STATE_H

#include "cpu/field/field.h"

/* All that a field knows, in memory that is aligned to 8 bytes: so a field that is read goes on as the one that was written, bit
 * for bit. Between two points, when hk_field_next has given all. FORMAT.md has the layout. hk_field_state_size: bytes, a multiple
 * of 8. hk_field_write: writes as many. */
size_t hk_field_state_size(const struct hk_field *field);
void hk_field_write(const struct hk_field *field, void *state);
/* Makes a field of a state, with the same numbers of members. rule: it is to go on with; refit, blame, members, forget and clip
 * may differ from those that it was written with. 0 and *out, -EBADMSG: it is none; -EINVAL: it is of other rows, neighbours or
 * another file than the rule has, or of more members; or -ENOMEM. The state of a model is looked at by hk_field_attach. */
int hk_field_read(struct hk_field **out, const struct hk_field_rule *rule, const void *state, size_t size);

#endif
