/* The line of sensors of a field with operator = focus. When a field is read from bytes, the state of its line is known before
 * the positions. Thread: the field's. */
#ifndef HK_FIELD_ATTACHED_LINE_H
#define HK_FIELD_ATTACHED_LINE_H

#include "cpu/field/focus.h"

/* All zero: neither positions nor state are known. */
struct hk_field_line {
  struct hk_focus_line *is; /* NULL: the positions are not known yet */
  uint8_t *state;           /* the state to continue from once they are known, or NULL */
  size_t size;              /* bytes of the line's state */
  double *value;            /* by sensor: values of a row */
  uint32_t *member;         /* by sensor: its member in the last row; HK_FOCUS_NONE: none */
};

/* Keeps a copy of a state until the positions are known. Returns 0 or -ENOMEM. */
int hk_field_line_keep(struct hk_field_line *line, const void *state, size_t size);
/* Makes the line of n positions, and continues from the kept state. Returns 0, or an error of hk_focus_new or hk_focus_read, with
 * a message. */
int hk_field_line_attach(struct hk_field_line *line, const struct hk_focus_rule *rule, uint32_t n, const double *position,
                         char *error, size_t size);
/* Begins a row: no sensor has a value or a member. Without positions it does nothing. */
void hk_field_line_begin(struct hk_field_line *line);
/* The time, in ns, at which a change that has its greatest value in a row began. False: that is before all times. */
bool hk_field_line_began(const struct hk_field_line *line, int64_t row, int64_t interval, int64_t *time);
/* Writes line->size bytes to memory aligned to 8. */
void hk_field_line_write(const struct hk_field_line *line, void *state);
void hk_field_line_close(struct hk_field_line *line);

#endif
