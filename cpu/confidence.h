/* How sure an alert is: a number in [0, 1] that grows with the margin, what the statistic was of its threshold.
 *
 *   confidence = high - (high - low) / margin^sharpness
 *
 * low is the share of alarms at the threshold itself that were within tolerance of a labelled change, and high that of those far
 * above it, on the recordings and signals of tests/bench/results/confidence.txt, which has how they were measured; the values in
 * between were fitted, roughly. So 0.7 says: of alerts like this one about seven in ten were right there, where recordings with
 * changes and signals that never change come together. On recordings that all have changes the margin told hardly anything.
 *
 * Host only. Thread: any. Cannot fail. */
#ifndef HK_CONFIDENCE_H
#define HK_CONFIDENCE_H

#include "cpu/alert.h"

/* channel: enum hk_channel; 0 for one that is none. margin: of a struct hk_event. */
static inline float hk_confidence(uint8_t channel, float margin)
{
  static const struct {
    double low, high, sharpness;
  } of[] = {
    [HK_CHANNEL_SCORE] = { 0.4, 0.8, 20 },
    [HK_CHANNEL_CHANGE] = { 0.37, 0.9, 40 },
    [HK_CHANNEL_SHIFT] = { 0.3, 0.97, 4 },
    [HK_CHANNEL_GROUP] = { 0.5, 0.9, 20 }, /* of 23 alerts: detection-group.txt */
  };
  if (channel == HK_CHANNEL_NONE || channel >= sizeof of / sizeof *of)
    return 0;
  const double above = margin > 1 ? (double)margin : 1;
  return (float)(of[channel].high - (of[channel].high - of[channel].low) / pow(above, of[channel].sharpness));
}

#endif
