/* Cuts labelled recordings into pieces. Thread: the caller's. */
#ifndef HK_LABELLED_CUT_H
#define HK_LABELLED_CUT_H

#include "daemon/cli/labelled.h"

/* Replaces each recording by its pieces of `points` points, one after the other, each with the labels that begin or end in it;
 * what remains is left out. A piece is a file of its own, whose name ends with the number of its first point. points: at least 1.
 * Returns 0, or -ENOMEM and changes nothing. */
int hk_labelled_cut(struct hk_labelled *set, uint32_t points);

/* Whether a set has files of even and of odd number; several: files of several sensors, the others do not count. */
bool hk_labelled_has_halves(const struct hk_labelled *set, bool several);
/* Puts the recordings of files of even number into half[0], of odd number into half[1]. These share everything with the set but
 * their lists, half[i].recording, which the caller frees in either case. Returns 0 or -ENOMEM. */
int hk_labelled_halve(const struct hk_labelled *set, struct hk_labelled half[2]);

#endif
