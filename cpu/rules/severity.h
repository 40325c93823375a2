/* Severity of an alert: how rare such an alert is, on one scale for all channels.
 *
 * Without a change, at most 2 x 10^-severity of the blocks of HK_SEVERITY_BLOCK points have an alert of at least this severity.
 * Novelty has a formula of its own (cpu/novelty/tail.h). Alerts of the other channels are rare, so the severity is computed from
 * the margin m, the ratio of the statistic to its threshold:
 *
 *   severity = at + slope log10 m, at most HK_SEVERITY_MEASURED
 *
 * with `at` and `slope` of each channel determined on one half of the files of the kind of recordings with the most alerts
 * outside labels: -log10 of the share of blocks with an alert, with one more than were seen; and Hill's estimate of the index of
 * a Pareto distribution of m, with the prior of novelty. Two are lower: that of score, whose margins had no information (seven of
 * nine were over 15, five of these false), and that of group, which had only 28 blocks. Detectors as in conf/hankeld.conf;
 * another threshold means another scale. Verified on the other half: tests/bench/results/severity.txt. Beyond
 * HK_SEVERITY_MEASURED there were too few blocks for a result.
 *
 * For `limit` the margin is how much nearer than the horizon the limit is. It is a warning at the horizon, because the user set
 * the limit, and more severe the nearer the limit, up to HK_SEVERITY_MEASURED at a hundredth of the horizon; the slope was
 * chosen, not measured. On recordings without a limit being reached, 0.35 % of the blocks had such an alert with windows of a
 * week, which cover the cycles there, and 0.63 % is promised; with windows of 12 hours 6.6 %: tests/bench/results/limit.txt.
 *
 * Cannot fail. Written once, for host and device. */
#ifndef HK_SEVERITY_H
#define HK_SEVERITY_H

#define HK_SEVERITY_BLOCK 40
#define HK_SEVERITY_MAX 40.0
#define HK_SEVERITY_MEASURED 3.0
#define HK_SEVERITY_LEAST 1.5 /* below it there is no promise */

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
