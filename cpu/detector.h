/* Detector: the parameters of change-point detection for a set of sensors, their defaults and their limits.
 *
 * A detector has the same text form everywhere: keys of a `[detector NAME]` section of the configuration, or
 * "window=96,rank=3,..." after --detector. Keys may come in any order; a preset is a starting point, and each given key overrides
 * it. hankeld.conf(5) documents the keys.
 *
 * The struct is plain data: copied by value, shared read-only between threads and with the device. */
#ifndef HK_DETECTOR_H
#define HK_DETECTOR_H

#include <stddef.h>
#include <stdint.h>

/* Functions written once for host (C) and device (CUDA). */
#ifdef __CUDACC__
#define HK_INLINE static __host__ __device__ inline
#else
#define HK_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of the parameters: what every backend must be able to score. */
#define HK_WINDOW_MIN 4
#define HK_WINDOW_MAX 1024
#define HK_GAP_MAX 4096
#define HK_KRYLOV_MAX 20
#define HK_PRODUCTS_MAX 40
#define HK_RANK_MAX 19 /* krylov is at least rank + 1 */
#define HK_STRIDE_MAX 65536
#define HK_FILL_MAX 64
#define HK_PROVISIONAL_WINDOW 12 /* provisional = yes: the smaller window; `window` is wider */
#define HK_GRAPH_WINDOW_MIN 8    /* algorithm = graph: see graph.h */
#define HK_GRAPH_SHORTEST 5      /* shortest segment, windows: the default and the maximum */
#define HK_GRAPH_SHORTEST_MIN 2
#define HK_GRAPH_WINDOWS (2 * HK_GRAPH_SHORTEST + 1) /* minimum of resident samples, windows: two such segments of nodes */
#define HK_RESIDENT_MIN (HK_GRAPH_WINDOWS * HK_GRAPH_WINDOW_MIN)
#define HK_RESIDENT_MAX 6000
#define HK_NEIGHBOURS_MAX 7
#define HK_NOVELTY_RESIDENT_MIN 1000 /* algorithm = novelty: see novelty/novelty.h */
#define HK_NOVELTY_RESIDENT_MAX 10000
#define HK_NOVELTY_ALARMS_LEAST 400  /* limits of false_alarms, per million scores: minimum of what held in measurements */
#define HK_NOVELTY_ALARMS_SHORT 1000 /* (tests/bench/results/detection-tails.txt), minimum with less resident than this, */
#define HK_NOVELTY_ALARMS_LONG 5000
#define HK_NOVELTY_ALARMS_MOST 10000 /* and maximum */
#define HK_NOVELTY_UNIT 2            /* S with a score of 1/2 */
#define HK_NOVELTY_BLOCK 40          /* points of a block */
#define HK_NOVELTY_SHAPE_REACH 50    /* points that make a shape: an exponential window */
#define HK_NOVELTY_SPARE 80 /* samples kept in addition to the resident ones: the newest, and as many as may come at once */
#define HK_LIMIT_BLOCKS 24  /* algorithm = limit: number of blocks of the window, see limit/limit.h */
#define HK_LIMIT_RING 32    /* newest samples kept, for display */
#define HK_LIMIT_WINDOW_MIN 60000000000 /* ns: limits of the window, 1m to 1000d */
#define HK_LIMIT_WINDOW_MAX 86400000000000000
#define HK_LIMIT_HORIZON_MAX 20 /* windows: a longer extrapolation is a guess */
/* Longest span, that of novelty. 2w - 1 + g samples, and resident + max_fill of a graph, are fewer. */
#define HK_SPAN_MAX (HK_NOVELTY_RESIDENT_MAX + HK_NOVELTY_SPARE)

enum hk_algorithm {
  HK_ALGORITHM_IKA,
  HK_ALGORITHM_SVD,
  HK_ALGORITHM_GRAPH,
  HK_ALGORITHM_SHIFT,
  HK_ALGORITHM_NOVELTY,
  HK_ALGORITHM_LIMIT
};
#define HK_ALGORITHM_LAST HK_ALGORITHM_LIMIT
enum hk_present { HK_PRESENT_RITZ, HK_PRESENT_POWER };
enum hk_operator { HK_OPERATOR_HANKEL, HK_OPERATOR_GRAM };
enum hk_scale { HK_SCALE_BASELINE, HK_SCALE_NONE, HK_SCALE_WINDOW };
enum hk_fill { HK_FILL_HOLD, HK_FILL_LINEAR };
enum hk_solver { HK_SOLVER_KRYLOV, HK_SOLVER_FULL };
enum hk_rate_of { HK_RATE_NO, HK_RATE_YES, HK_RATE_AUTO };
enum hk_channels { HK_CHANNELS_ALL, HK_CHANNELS_VALUE };
enum hk_alert_mode { HK_ALERT_ADAPTIVE, HK_ALERT_FIXED, HK_ALERT_OFF };

/* Keys of algorithm = limit. All zero: not given. */
struct hk_limit_rule {
  int64_t window;      /* ns: window of the trend; a multiple of HK_LIMIT_BLOCKS */
  int64_t horizon;     /* ns: an alert is raised when the limit is nearer */
  double upper, lower; /* limits; 0 unless given */
  float confidence;    /* minimum of Mann and Kendall's z */
  uint8_t has_upper, has_lower;
  uint8_t unused[2]; /* 0 */
};

struct hk_detector {       /* detectors are compared byte by byte: there is no padding */
  uint8_t algorithm;       /* enum hk_algorithm */
  uint8_t present;         /* enum hk_present: how mu, the direction of the present, is computed */
  uint8_t operator_;       /* enum hk_operator: Lanczos on H (one product a step) or on H H^T (two) */
  uint8_t scale;           /* enum hk_scale: what centres a span */
  uint8_t fill;            /* enum hk_fill: how missing samples are filled in */
  uint8_t alert;           /* enum hk_alert_mode */
  uint8_t reorthogonalise; /* 1: full re-orthogonalisation in every Lanczos step; 0 in preset paper */
  uint8_t search;          /* graph: 1: the window is determined from the data, at most `window` */
  uint32_t window;         /* w, samples; HK_WINDOW_MIN..HK_WINDOW_MAX */
  uint32_t gap;            /* g, samples; 1..HK_GAP_MAX */
  uint32_t rank;           /* r; 1..HK_RANK_MAX and at most w - 1 */
  uint32_t krylov;         /* k, Lanczos steps on the past; rank + 1..min(HK_KRYLOV_MAX, w) */
  uint32_t products;       /* Hankel products spent on mu; 1..HK_PRODUCTS_MAX; power and gram need an even number */
  uint32_t stride;         /* samples from one score to the next; 1..HK_STRIDE_MAX; 0: a quarter of the determined window */
  uint32_t max_fill;       /* longest gap that is filled, samples; 0..HK_FILL_MAX */
  uint32_t hold;           /* consecutive scores above the threshold that raise an alert; >= 1 */
  uint32_t cooldown;       /* samples after a cleared alert in which none is raised; 0..span */
  uint32_t baseline;       /* time constant of the slow baseline, spans; 1..1000 */
  uint32_t resident;       /* graph, novelty: samples to compare the present with (graph: >= HK_GRAPH_WINDOWS * w); else 0 */
  uint32_t neighbours;     /* graph: neighbours of each node; 1..HK_NEIGHBOURS_MAX, else 0 */
  int64_t interval;        /* expected spacing of samples, ns; 0 = learned from the data */
  int64_t silent;  /* time without a point after which a sensor is stale, ns on the arrival clock; 0 = ten intervals, at least ten
                      seconds; -1 = never */
  float threshold; /* fixed alert: the score that raises an alert; in (0, 1] */
  float min_score; /* no alert below this score, whatever threshold was learned; in [0, 1] */
  float clear;     /* an alert is cleared below threshold * clear; in (0, 1] */
  float signal; /* no alert unless the ratio of the energy of the present in the leading direction to the remaining energy is at
                   least this many times its value in white noise; >= 0, 0 = off */
  float level;  /* graph: weight of the levels in the similarity; >= 0, else 0 */
  float roughness;     /* graph: weight of the roughness relative to the spread; >= 0, else 0 */
  float false_alarms;  /* adaptive alert: desired false alarms per million scores; in [0.001, 100000]; novelty: 0 if `alert` was
                          given */
  uint32_t shortest;   /* graph: shortest segment, windows; HK_GRAPH_SHORTEST_MIN..HK_GRAPH_SHORTEST, else 0 */
  float locality;      /* graph: additional distance of nodes that are close in time; >= 0, else 0 */
  uint8_t solver;      /* svd: enum hk_solver: how eigenvectors are computed; else 0 */
  uint8_t rate;        /* enum hk_rate_of: whether the sensor is a counter, which the daemon converts to a rate before any backend
                          receives it */
  uint8_t provisional; /* ika, svd: 1: a smaller window scores until this one is full, see provisional/provisional.h */
  uint8_t channels;    /* novelty: enum hk_channels: which distances count; else 0 */
  struct hk_limit_rule limit;
};

/* Detector under construction, with the keys that were given. Null initialiser: HK_DETECTOR_DRAFT_NULL. Owner: the caller. */
struct hk_detector_draft {
  struct hk_detector detector;
  uint64_t given; /* bit i: key i of enum hk_key was given */
  uint8_t preset; /* enum hk_preset */
};
#define HK_DETECTOR_DRAFT_NULL                                                                                                   \
  {                                                                                                                              \
    { 0 }, 0, 0                                                                                                                  \
  }

/* Number of samples kept of a sensor. ika, svd: what one score reads, 2w - 1 + g. graph: the resident ones, and as many as may be
 * filled in at once. shift: two spans, and as many as may come at once. novelty: the resident ones and a few more. limit: a few,
 * for display. */
HK_INLINE uint32_t hk_detector_span(const struct hk_detector *d)
{
  switch (d->algorithm) {
  case HK_ALGORITHM_GRAPH:
    return d->resident + d->max_fill;
  case HK_ALGORITHM_SHIFT:
    return 2 * d->window + d->max_fill + 1;
  case HK_ALGORITHM_NOVELTY:
    return (d->resident + HK_NOVELTY_SPARE + 3) & ~3u; /* read four at a time */
  case HK_ALGORITHM_LIMIT:
    return HK_LIMIT_RING;
  default:
    return 2 * d->window - 1 + d->gap;
  }
}

/* Sets one key. Returns 0, or -EINVAL with a message in error that names the key, the value and what is allowed. */
int hk_detector_set(struct hk_detector_draft *draft, const char *key, const char *value, char *error, size_t size);

/* Fills in preset and defaults, and checks that the keys are consistent. Returns 0 or -EINVAL with a message. */
int hk_detector_finish(const struct hk_detector_draft *draft, struct hk_detector *out, char *error, size_t size);

/* Parses "key=value,key=value" (blanks around tokens are allowed; "" is the default detector). Returns as hk_detector_finish. For
 * several algorithms see detectors.h. */
int hk_detector_parse(const char *text, struct hk_detector *out, char *error, size_t size);

/* Writes the names of the keys in which two detectors differ, separated by commas; "" if they are equal. */
void hk_detector_differences(const struct hk_detector *a, const struct hk_detector *b, char *out, size_t size);

/* Iterates over the keys that apply to the algorithm of a detector, with their values in the form of the configuration. Returns
 * the name of the next key, or NULL at the end. *next: 0 at first. value: truncated if it does not fit; 32 bytes are enough. */
const char *hk_detector_key_text(const struct hk_detector *d, uint32_t *next, char *value, size_t size);

/* Returns the given keys that do not apply to an algorithm, or whose value does not; bits as in `given`. */
uint64_t hk_detector_strange(const struct hk_detector_draft *draft, uint8_t algorithm);

/* Name of an algorithm for messages and reports; "?" if out of range. */
const char *hk_algorithm_name(uint8_t algorithm);

#ifdef __cplusplus
}
#endif
#endif
