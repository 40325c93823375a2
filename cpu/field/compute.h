/* Computes the rows of a field by its operator, on the host or on the device that it was given. */
#ifndef HK_FIELD_COMPUTE_H
#define HK_FIELD_COMPUTE_H

struct hk_field;
struct hk_field_open;
struct hk_field_row;

/* Computes the row before field->next, whose points are `open`: fills the field's values and, where the operator gives them, its
 * times, and of `out` latest, said, out and own. */
void hk_field_compute(struct hk_field *field, const struct hk_field_open *open, struct hk_field_row *out);

#endif
