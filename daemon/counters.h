/* What the daemon counts, since its start. Always: in = scored + unscored + late + rejected + dropped + pending, pending being
 * the points that were accepted and have no result yet. Thread: the loop's. */
#ifndef HK_COUNTERS_H
#define HK_COUNTERS_H

#include <stdint.h>

struct hk_counters {
  /* points */
  uint64_t in;       /* that came with a readable frame, datagram or line */
  uint64_t scored;   /* a score was given */
  uint64_t unscored; /* warming up, or between strides */
  uint64_t late;
  uint64_t rejected;
  uint64_t pending;
  /* dropped, by reason */
  uint64_t unknown_handle;
  uint64_t full;        /* a new sensor past max_sensors or memory */
  uint64_t no_detector; /* no detector matches the name */
  uint64_t failed;      /* the backend refused them */
  uint64_t device_lost; /* were in flight when the device was lost */
  /* rejected for a time farther in the future than max_ahead; in `rejected` too */
  uint64_t ahead;

  uint64_t raised, corrected, cleared, stale, back;
  uint64_t evicted;       /* sensors */
  uint64_t names_refused; /* times that a name was refused a sensor, whatever the reason */

  uint64_t frames, bad_frames;
  uint64_t lines, bad_lines;
  uint64_t strings; /* fields of text in good lines */

  uint64_t datagrams;     /* all that came */
  uint64_t bad_datagrams; /* not one whole frame of points; no line in it that can be read */
  uint64_t strangers;     /* of no open feed */
  uint64_t kernel_lost;   /* datagrams for which the socket's buffer had no room */
  /* of feeds that have ended; status adds the open ones */
  uint64_t lost, lost_points, repeated, reordered, too_late;

  uint64_t accepted, refused;       /* connections */
  uint64_t timed_out, cut_off;      /* closed for silence; subscribers closed because they did not read */
  uint64_t gap_results, gap_events; /* left out for slow subscribers */
  uint64_t batches;
};

static inline uint64_t hk_counters_dropped(const struct hk_counters *c)
{
  return c->unknown_handle + c->full + c->no_detector + c->failed + c->device_lost;
}

#endif
