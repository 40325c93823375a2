/* What the daemon counts, since its start.
 *
 * Every thread has counters of its own, which it alone writes and anybody may read; what is reported is their sum. Always:
 * in = scored + unscored + relayed + late + rejected + dropped + pending, pending being the points that were accepted and have no
 * result yet: it is what is left, so it is not counted. For it to be never too small a point is counted as `in` before it is
 * counted as anything else, and hk_counters_sum looks at `in` last. */
#ifndef HK_COUNTERS_H
#define HK_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint64_t hk_counter;

/* Nothing but counters. */
struct hk_counters {
  /* points */
  hk_counter in;      /* that came with a readable frame, datagram or line, or were made; the first member: see hk_counters_sum */
  hk_counter derived; /* of these, that the daemon made of others for sensors of its own */
  hk_counter scored;  /* a score was given */
  hk_counter unscored; /* warming up, or between strides */
  hk_counter relayed;  /* published to the logs of a cluster, and confirmed there */
  hk_counter late;
  hk_counter rejected;
  /* dropped, by reason */
  hk_counter unknown_handle;
  hk_counter resent;      /* a feed sent them again, and they were there already */
  hk_counter full;        /* a new sensor past max_sensors or memory */
  hk_counter no_detector; /* no detector matches the name */
  hk_counter reserved;    /* the name is that of a series that the daemon makes */
  hk_counter over_quota;  /* a new sensor of a peer that has as many as one may have */
  hk_counter failed;      /* the backend refused them */
  hk_counter device_lost; /* were in flight when the device was lost */
  /* rejected for a time farther in the future than max_ahead; in `rejected` too */
  hk_counter ahead;

  hk_counter raised, corrected, cleared, stale, back;
  hk_counter flapping, held_back; /* alerts by which a sensor began to flap; that came behind those. Of those raised */
  hk_counter evicted;             /* sensors */
  hk_counter names_refused;       /* times that a name was refused a sensor, whatever the reason */

  hk_counter frames, bad_frames;
  hk_counter lines, bad_lines;
  hk_counter strings; /* fields of text in good lines */

  hk_counter datagrams;     /* all that came */
  hk_counter bad_datagrams; /* not one whole frame of points; no line in it that can be read */
  hk_counter strangers;     /* of no open feed */
  hk_counter forged;        /* of one whose keyed checksum did not match */
  hk_counter kernel_lost;   /* datagrams for which the socket's buffer had no room */
  /* of feeds that have ended; status adds the open ones */
  hk_counter lost, lost_points, repeated, reordered, too_late;

  hk_counter accepted, refused;       /* connections */
  hk_counter unauthorized, forbidden; /* refused for what they showed, or did not; requests beyond their scopes */
  hk_counter timed_out, cut_off;      /* closed for silence; subscribers closed because they did not read */
  hk_counter launched;                /* points that were put into a batch */
  hk_counter gap_results, gap_events; /* left out for slow subscribers */
  hk_counter batches;
};

/* Counts n more. Thread: the one whose counters they are. */
static inline void hk_count(hk_counter *counter, uint64_t n)
{
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_release);
}

/* Adds what n threads have counted to *sum, which nobody else knows. */
static inline void hk_counters_sum(struct hk_counters *sum, const struct hk_counters *const *of, size_t n)
{
  const size_t all = sizeof *sum / sizeof(hk_counter);
  for (size_t pass = 0; pass < 2; pass++) /* `in` last */
    for (size_t i = 0; i < n; i++)
      for (size_t k = pass ? 0 : 1; k < (pass ? 1 : all); k++)
        hk_count((hk_counter *)sum + k, atomic_load_explicit((const hk_counter *)of[i] + k, memory_order_acquire));
}

static inline uint64_t hk_counters_dropped(const struct hk_counters *c)
{
  return c->unknown_handle + c->resent + c->full + c->no_detector + c->reserved + c->over_quota + c->failed + c->device_lost;
}

/* Of a sum: points that were accepted and are in no batch yet. */
static inline uint64_t hk_counters_waiting(const struct hk_counters *c)
{
  return c->in - c->launched - c->unknown_handle - c->resent - c->full - c->no_detector - c->reserved - c->over_quota;
}

/* Of a sum. */
static inline uint64_t hk_counters_pending(const struct hk_counters *c)
{
  return c->in - c->scored - c->unscored - c->relayed - c->late - c->rejected - hk_counters_dropped(c);
}

#endif
