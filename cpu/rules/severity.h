/* Severity of an alert: how rare so grave a one is, on one scale for all channels.
 *
 * At most 2 x 10^-severity of the blocks of HK_SEVERITY_BLOCK points of data without changes have an alert as grave: promised to
 * HK_SEVERITY_PROMISED, on average over kinds of data to one more. Novelty has a formula of its own (cpu/novelty/tail.h).
 *
 * Cannot fail. Written once, for host and device. */
#ifndef HK_SEVERITY_H
#define HK_SEVERITY_H

#define HK_SEVERITY_BLOCK 40
#define HK_SEVERITY_MAX 40.0
#define HK_SEVERITY_PROMISED 2.5

#endif
