/* Neighbours that a field finds itself. */
#ifndef HK_FIELD_CHOOSE_H
#define HK_FIELD_CHOOSE_H

struct hk_field;

/* A row was taken: those that are due choose their neighbours. Where there is no memory for that they keep those that
 * they have, and choose the next time. */
void hk_field_choose(struct hk_field *field);

#endif
