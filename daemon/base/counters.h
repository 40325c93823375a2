/* Counters of the daemon since its start.
 *
 * Each thread writes its own counters, which any thread may read; reports show their sum. At all times:
 * in = scored + unscored + relayed + late + rejected + dropped + pending
 *
 * `pending` are accepted points without a result. It is computed as the difference. So that it is never too small, a point is
 * counted in `in` before any other counter, and hk_counters_sum reads `in` last. */
#ifndef HK_COUNTERS_H
#define HK_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef _Atomic uint64_t hk_counter;

/* Has members of type hk_counter only: hk_counters_sum treats it as an array. */
struct hk_counters {
  /* points */
  hk_counter in; /* received in valid frames, datagrams or lines, or derived; must be the first member: see hk_counters_sum */
  hk_counter derived;          /* of these, computed by the daemon for its derived sensors */
  hk_counter derived_late;     /* late ones of these; before `late`, so that a sum reads it first */
  hk_counter derived_rejected; /* rejected ones, before `rejected` */
  hk_counter spikes;           /* values of members of filtering fields that were spikes; derived from others' points */
  hk_counter scored;           /* points with a score */
  hk_counter unscored;         /* warming up, or between strides */
  hk_counter relayed;          /* published to the logs of a cluster and confirmed by the broker */
  hk_counter late;
  hk_counter rejected;
  /* dropped, by reason */
  hk_counter unknown_handle;
  hk_counter resent;       /* sent again by a feed, already present */
  hk_counter full;         /* a new sensor beyond max_sensors or the memory limit */
  hk_counter no_detector;  /* no detector matches the name */
  hk_counter reserved;     /* the name belongs to a derived sensor */
  hk_counter over_quota;   /* a new sensor of a peer that has reached max_sensors_per_peer */
  hk_counter failed;       /* the backend refused them */
  hk_counter device_lost;  /* in flight when the device was lost */
  hk_counter pictures;     /* of cameras */
  hk_counter bad_pictures; /* dropped */
  /* rejected because their time is further ahead than max_ahead; also counted in `rejected` */
  hk_counter ahead;

  hk_counter raised, corrected, cleared, stale, back;
  hk_counter flapping, held_back; /* raised alerts with which a sensor began to flap; raised alerts after those */
  hk_counter evicted;             /* sensors */
  hk_counter names_refused;       /* refusals to create a sensor, for any reason */

  hk_counter frames, bad_frames;
  hk_counter lines, bad_lines;
  hk_counter strings; /* text fields in valid lines */

  hk_counter datagrams;     /* all received */
  hk_counter bad_datagrams; /* without a complete frame of points, or without a valid line */
  hk_counter strangers;     /* of no open feed */
  hk_counter forged;        /* of an open feed, with a wrong keyed checksum */
  hk_counter kernel_lost;   /* lost because the socket's receive buffer was full */
  /* of ended datagram feeds; the status adds open feeds */
  hk_counter lost, lost_points, repeated, reordered, too_late;

  hk_counter accepted, refused;       /* connections */
  hk_counter unauthorized, forbidden; /* refused for missing or invalid credentials; requests beyond a peer's scopes */
  hk_counter timed_out, cut_off;      /* connections closed for inactivity; subscribers closed because they did not read */
  hk_counter launched;                /* points put into a batch */
  hk_counter gap_results, gap_events; /* not sent to slow subscribers */
  hk_counter batches;
};

/* Adds n. Thread: the owner of the counters. */
static inline void hk_count(hk_counter *counter, uint64_t n)
{
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_release);
}

/* Adds the counters of n threads to *sum, which no other thread uses. */
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

/* Of a sum: accepted points that are not in a batch yet. */
static inline uint64_t hk_counters_waiting(const struct hk_counters *c)
{
  return c->in - c->launched - c->unknown_handle - c->resent - c->full - c->no_detector - c->reserved - c->over_quota;
}

/* Of a sum: accepted points without a result. */
static inline uint64_t hk_counters_pending(const struct hk_counters *c)
{
  return c->in - c->scored - c->unscored - c->relayed - c->late - c->rejected - hk_counters_dropped(c);
}

#endif
