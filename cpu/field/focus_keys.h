/* The keys of a field with operator = focus: see focus.h. */
#ifndef HK_FOCUS_KEYS_H
#define HK_FOCUS_KEYS_H

#include <stdint.h>

#define HK_FOCUS_SPEEDS_MAX 8
#define HK_FOCUS_BLOCK_MAX 64
#define HK_FOCUS_PLACES_MAX 64

enum hk_focus_travel {
  HK_FOCUS_OUTWARD, /* from its place in both directions */
  HK_FOCUS_ONWARD,  /* from its place in one direction */
};

/* The keys that only this operator has. Lengths are in the unit of the positions. */
struct hk_focus_keys {
  double speed[HK_FOCUS_SPEEDS_MAX]; /* lengths a second; over 0 */
  uint32_t speeds;                   /* number of them; 1..HK_FOCUS_SPEEDS_MAX */
  uint32_t travel;                   /* enum hk_focus_travel */
  double flow;                       /* lengths a second; less than any speed */
  double reach;                      /* over 0 */
  double threshold;                  /* of F; 0.1..1000 */
  uint32_t block;                    /* rows; 1..HK_FOCUS_BLOCK_MAX */
  uint32_t places;                   /* of each sensor; 1..HK_FOCUS_PLACES_MAX */
};

#endif
