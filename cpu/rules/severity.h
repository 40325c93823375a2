/* Severity of an alert: how rare so grave a one is, on one scale for all channels.
 *
 * At most 2 x 10^-severity of the blocks of HK_SEVERITY_BLOCK points have such a one where nothing has changed. Novelty has a formula
 * of its own (cpu/novelty/tail.h). Of the others alerts are rare, so what one is of its threshold, the margin m, says it:
 *
 *   severity = at + slope log10 m, at most HK_SEVERITY_MEASURED
 *
 * with `at` and `slope` of each channel from recordings where nothing was labelled: -log10 of the share of blocks with an alert, and
 * Hill's estimate of the index of a Pareto law of m with the prior that novelty has. Made with half of the files of the kind of data
 * that has the most alerts, with detectors as in conf/hankeld.conf; checked on the other half: tests/bench/results/severity.txt. With
 * another threshold it is another scale. Beyond HK_SEVERITY_MEASURED there were too few blocks to see anything.
 *
 * Cannot fail. Written once, for host and device. */
#ifndef HK_SEVERITY_H
#define HK_SEVERITY_H

#define HK_SEVERITY_BLOCK 40
#define HK_SEVERITY_MAX 40.0
#define HK_SEVERITY_MEASURED 3.0

#define HK_SEVERITY_SCORE_AT 1.55
#define HK_SEVERITY_SCORE_SLOPE 1.3
#define HK_SEVERITY_CHANGE_AT 1.88
#define HK_SEVERITY_CHANGE_SLOPE 8.3
#define HK_SEVERITY_SHIFT_AT 2.31
#define HK_SEVERITY_SHIFT_SLOPE 1.65
#define HK_SEVERITY_GROUP_AT 1.2
#define HK_SEVERITY_GROUP_SLOPE 2.0

#endif
