/* Severity of an alert: how rare so grave a one is, on one scale for all channels.
 *
 * At most 2 x 10^-severity of the blocks of HK_SEVERITY_BLOCK points have such a one where nothing has changed. Novelty has a
 * formula of its own (cpu/novelty/tail.h). Of the others alerts are rare, so what one is of its threshold, the margin m, says it:
 *
 *   severity = at + slope log10 m, at most HK_SEVERITY_MEASURED
 *
 * with `at` and `slope` of each channel from half of the files of that kind of recordings that has the most alerts outside its
 * labels: -log10 of the share of blocks with an alert, of one more than were seen; and Hill's estimate of the index of a Pareto
 * law of m, with the prior that novelty has. Two are lower: of score, whose margins said nothing (seven of nine were over 15,
 * five of these false), and of group, of which there were 28 blocks. Detectors as in conf/hankeld.conf; with another threshold it
 * is another scale. Checked on the other half: tests/bench/results/severity.txt. Beyond HK_SEVERITY_MEASURED there were too few
 * blocks to see anything.
 *
 * Cannot fail. Written once, for host and device. */
#ifndef HK_SEVERITY_H
#define HK_SEVERITY_H

#define HK_SEVERITY_BLOCK 40
#define HK_SEVERITY_MAX 40.0
#define HK_SEVERITY_MEASURED 3.0
#define HK_SEVERITY_LEAST 1.5 /* below it nothing is promised */

#define HK_SEVERITY_SCORE_AT 1.87
#define HK_SEVERITY_SCORE_SLOPE 0.1
#define HK_SEVERITY_CHANGE_AT 1.85
#define HK_SEVERITY_CHANGE_SLOPE 8.3
#define HK_SEVERITY_SHIFT_AT 2.17
#define HK_SEVERITY_SHIFT_SLOPE 1.65
#define HK_SEVERITY_GROUP_AT 1.15
#define HK_SEVERITY_GROUP_SLOPE 2.0

#endif
