/* A saver and its slices, shared by the shard's side (snapshot_slices.h) and the thread (snapshot_thread.h). */
#ifndef HK_SNAPSHOT_SLICE_H
#define HK_SNAPSHOT_SLICE_H

#include "daemon/base/buffer.h"
#include "daemon/durable/durable.h"
#include "daemon/durable/snapshot.h"
#include "daemon/scoring/groups.h"
#include "daemon/scoring/held_partitions.h"
#include "daemon/scoring/shard.h"

/* Its place and owner. */
struct hk_saver_place {
  struct hk_shard *shard;
  struct hk_durable *durable;
  uint64_t epoch; /* see snapshot.h */
  bool restored;  /* the shard continued from a snapshot of this epoch, */
  uint64_t begin; /* which began at this position */
  bool shared;    /* each held partition of the shard has a file in its own folder; else all sensors share one file */
};

/* For status. */
struct hk_saver_condition {
  bool running;
  int64_t last;            /* ns, wall clock: the start of the last good snapshot; 0: none since the start */
  int64_t took;            /* ns: its duration */
  uint64_t sensors, bytes; /* its size */
  uint64_t made, failed;   /* snapshots since the start */
  char why[128];           /* why the last one failed; else "" */
};

/* A sensor of a slice. */
struct hk_saved_sensor {
  struct hk_alerts_memory alerts;
  uint64_t owner;      /* its owner; 0: none */
  struct hk_rate rate; /* at the slice's position, if it has one; filled in with the batch, by image */
  uint32_t slot;       /* the registry's */
  uint32_t image;      /* of the batch */
  uint32_t name;       /* offset in names */
  uint16_t name_size;
  uint16_t detector; /* number within the slice; filled in with the batch, by image */
  uint8_t generation;
  uint16_t provisional_size; /* bytes of `provisional` of the slice, in the order of the sensors */
  uint32_t partition;        /* if partitions have files of their own */
};

/* A machine of a slice, whose series is one of its sensors. */
struct hk_saved_machine {
  struct hk_machine_memory memory; /* filled in with the batch; its pointers refer to `machines`, */
  struct hk_groups_saved places;   /* at these offsets */
  uint32_t image;                  /* of its series, in the batch */
  uint32_t partition;              /* of its series */
  uint8_t generation;
  bool whole; /* it has come back */
};

struct hk_saved_feed {
  struct hk_feed *feed;
  uint64_t owner, upto;
};

/* Orders to the saver's thread. */
struct hk_save_order {
  enum { HK_SAVE_SLICE, HK_SAVE_BEGIN, HK_SAVE_END, HK_SAVE_GIVE_UP } kind;
  struct hk_save_order *next;
};

/* Owner: the shard's thread; while an order for it is with the saver's thread, that thread. */
struct hk_slice {
  struct hk_save_order order; /* the first member */
  atomic_bool busy;
  struct hk_delivery *delivery;
  uint64_t position, bytes; /* bytes: maximum size of its images */
  uint64_t events;          /* position of the last event that its sensors may have caused */
  int64_t arrival;          /* ns, hk_now: when it was taken */
  struct hk_saved_sensor sensors[HK_EXPORT_SENSORS];
  uint32_t n;
  struct hk_config_detector *detectors; /* copies */
  uint32_t n_detectors, room_detectors;
  char *names;
  uint32_t names_size, names_room;
  struct hk_saved_machine *machine; /* in the order of their images */
  uint32_t n_machines, room_machines;
  struct hk_buffer machines;
  struct hk_buffer provisional; /* what is saved of provisional scores */
};

/* Progress of the current snapshot. Thread: the shard's (snapshot_slices.c). */
struct hk_save_progress {
  enum {
    HK_SAVER_IDLE,
    HK_SAVER_WAITING,
    HK_SAVER_SLICING,
    HK_SAVER_ENDING
  } state;         /* WAITING: until the current chunk is taken */
  uint64_t number; /* of the last file */
  struct hk_snapshot_about about;
  uint64_t asked; /* the last request that the current snapshot answers */
  bool hurry;
  int64_t begun, ended, next_slice; /* ns, hk_now */
  uint64_t logged;                  /* position of the last event at its start */
  uint32_t at;                      /* the next slot, within the shard */
  bool passed;                      /* all slots were visited */
  uint32_t phase;                   /* enum phase: which sensors are being saved */
  bool due;                         /* a slice is due, and waits for a place among the batches in flight */
  bool held_up;                     /* it waits for the end of the current chunk; no chunk is begun meanwhile */
  uint32_t *left;                   /* slots that had points in chains */
  uint32_t n_left, room_left;
  uint32_t saved, in_slice;   /* number of sensors so far; in the last slice */
  struct hk_slice *exporting; /* in flight, or stuck */
  bool stuck;                 /* not in flight yet */
};

/* A file of a snapshot. */
struct hk_save_file {
  struct hk_snapshot_writer *writer;
  int folder;                           /* of the file */
  const struct hk_held_partition *held; /* the partition whose sensors it has; NULL: all sensors */
};

/* The files. Thread: the saver's (snapshot_thread.c). */
struct hk_save_output {
  pthread_t thread;
  bool running;
  struct hk_save_file *file; /* files of the current snapshot; n of them */
  uint32_t n;
  void *room; /* buffer for a state */
  size_t room_size;
  uint64_t sensors, last, events; /* of the current snapshot; last, events: the highest of its slices */
  uint64_t kept[2], logged_by[2]; /* positions of points, and of events, at the start of the kept snapshots, newest first */
  uint32_t n_kept;
  struct hk_score_wait scores; /* of partitions */
  struct hk_counters counters; /* stays zero: for releasing deliveries without points */
  struct hk_log_quota failures;
};

struct hk_saver {
  struct hk_saver_place place;
  struct hk_save_progress progress;
  struct hk_save_output output;
  struct hk_slice slice[HK_EXPORTS];
  struct hk_saved_feed *feeds; /* of the current snapshot; the shard's thread writes, the saver's reads */
  uint32_t n_feeds, room_feeds;
  struct hk_held_partition *held; /* n_held of the current snapshot, likewise; their folders are closed with it */
  uint32_t n_held;
  struct hk_save_order order[2]; /* begin; end */

  /* both threads */
  atomic_bool failed; /* the current snapshot is to be abandoned */
  atomic_bool over;   /* the saver's thread is done with it */
  atomic_bool hurries;
  atomic_uint_fast64_t asks, answered;
  pthread_mutex_t lock; /* protects the following */
  pthread_cond_t changed;
  struct hk_save_order *first, **tail;
  bool quit;
  struct hk_saver_condition condition;
};

#endif
