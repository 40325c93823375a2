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
 * Of `limit` the margin is how much nearer than the horizon the limit is. What is told is a warning from the horizon on, as
 * whoever gave the limit wants to know, and graver the nearer it is, up to HK_SEVERITY_MEASURED at a hundredth of the horizon;
 * the slope is chosen and not measured. Where nothing runs full, 0.35 % of the blocks had such an alert with windows of a week,
 * which cover the cycles there, and 0.63 % is promised; with windows of 12 hours 6.6 %: tests/bench/results/limit.txt.
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
#define HK_SEVERITY_LIMIT_AT 2.5
#define HK_SEVERITY_LIMIT_SLOPE 0.25

#endif
