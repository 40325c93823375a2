/* Chooses the neighbours of a field that finds them itself. */
#ifndef HK_FIELD_CHOOSE_H
#define HK_FIELD_CHOOSE_H

struct hk_field;

/* Call after each row: members that are due choose their neighbours. If there is no memory for that, they keep their neighbours
 * and choose again the next time. */
void hk_field_choose(struct hk_field *field);

#endif
