/* Strength of an alert: a number in [0, 1] that grows with the margin, what the statistic was of its threshold.
 *
 *   confidence = high - (high - low) / margin^sharpness
 *
 * It is not a probability: it was fitted to few recordings and signals (tests/bench/results/confidence.txt), and on recordings that
 * had no part in that far fewer alerts were right than it says: shift 0.33 where it says 0.75, change 0.32 (0.60), score 0.39 (0.63),
 * channels in another order. So it only puts the alerts of one channel in order, is named `confidence` on the wire for the clients
 * that read that, and is not shown to people.
 *
 * Host only. Thread: any. Cannot fail. */
#ifndef HK_CONFIDENCE_H
#define HK_CONFIDENCE_H

#include "cpu/rules/alert.h"

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
