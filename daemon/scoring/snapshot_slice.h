/* A saver and its slices, shared by the shard's side (snapshot_slices.h) and the thread (snapshot_thread.h). */
#ifndef HK_SAVER_PARTS_H
#define HK_SAVER_PARTS_H

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
  bool restored;  /* the shard went on from a snapshot of this epoch, */
  uint64_t begin; /* which began at this position */
  bool shared;    /* the shard's partitions, as they are held, have a file each, in their folders; else all sensors have one */
};

/* For status. */
struct hk_saver_condition {
  bool running;
  int64_t last;            /* ns, wall clock: the start of the last good one; 0: none since the start */
  int64_t took;            /* ns: that it took */
  uint64_t sensors, bytes; /* of it */
  uint64_t made, failed;   /* since the start */
  char why[128];           /* the last one failed: why; else "" */
};

/* A sensor of a slice. */
struct hk_saved_sensor {
  struct hk_alerts_memory alerts;
  uint64_t owner;      /* its owner; 0: none */
  struct hk_rate rate; /* at the slice's position, if its rate is made; filled in with the batch, by image */
  uint32_t slot;       /* the registry's */
  uint32_t image;      /* of the batch */
  uint32_t name;       /* where it begins in names */
  uint16_t name_size;
  uint16_t detector; /* the slice's; filled in with the batch, by image */
  uint8_t generation;
  uint32_t partition; /* where they have files each */
};

/* A machine of a slice, whose series is one of its sensors. */
struct hk_saved_machine {
  struct hk_machine_memory memory; /* filled in with the batch; its pointers refer to `machines`, */
  struct hk_groups_saved places;   /* here */
  uint32_t image;                  /* of the batch: of the series */
  uint32_t partition;              /* as its series' */
  uint8_t generation;
  bool whole; /* it has come back */
};

struct hk_saved_feed {
  struct hk_feed *feed;
  uint64_t owner, upto;
};

/* Orders to the saver's thread. */
struct hk_save_order {
  enum { SAVE_SLICE, SAVE_BEGIN, SAVE_END, SAVE_GIVE_UP } kind;
  struct hk_save_order *next;
};

/* Owner: the shard's thread; while it is ordered, the saver's. */
struct hk_slice {
  struct hk_save_order order; /* the first member */
  atomic_bool busy;
  struct hk_delivery *delivery;
  uint64_t position, bytes; /* bytes: of images, at most */
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
};

/* How far the snapshot under way is. Thread: the shard's (snapshot_slices.c). */
struct hk_save_progress {
  enum { IDLE, WAITING, SLICING, ENDING } state; /* WAITING: until the chunk that is being taken is */
  uint64_t number;                               /* of the last file */
  struct hk_snapshot_about about;
  uint64_t asked; /* the last request that the current snapshot answers */
  bool hurry;
  int64_t begun, ended, next_slice; /* ns, hk_now */
  uint64_t logged;                  /* position of the last event at its start */
  uint32_t at;                      /* the next slot, within the shard */
  bool passed;                      /* all slots were visited, */
  uint32_t phase;                   /* enum phase: which sensors are being saved */
  bool due;                         /* a slice is, and waits for a place among the batches in flight */
  bool held_up;                     /* it waits for the end of the current chunk; none is begun meanwhile */
  uint32_t *left;                   /* slots that had points in chains */
  uint32_t n_left, room_left;
  uint32_t saved, in_slice;   /* sensors so far; of the last slice */
  struct hk_slice *exporting; /* in flight, or stuck */
  bool stuck;                 /* not in flight yet */
};

/* A file of a snapshot. */
struct hk_save_file {
  struct hk_snapshot_writer *writer;
  int folder;                           /* where it is */
  const struct hk_held_partition *held; /* whose sensors it has; NULL: all */
};

/* The files. Thread: the saver's (snapshot_thread.c). */
struct hk_save_output {
  pthread_t thread;
  bool running;
  struct hk_save_file *file; /* of the one under way; n of them */
  uint32_t n;
  void *room; /* for a state */
  size_t room_size;
  uint64_t sensors, last, events; /* of the one under way; last, events: the highest of its slices */
  uint64_t kept[2], logged_by[2]; /* positions at which the snapshots that are kept began, the newest first; of events then */
  uint32_t n_kept;
  struct hk_counters counters; /* an empty one, which releases deliveries without points */
  struct hk_log_quota failures;
};

struct hk_saver {
  struct hk_saver_place place;
  struct hk_save_progress progress;
  struct hk_save_output output;
  struct hk_slice slice[HK_EXPORTS];
  struct hk_saved_feed *feeds; /* of the snapshot under way; the shard's thread writes, the saver's reads */
  uint32_t n_feeds, room_feeds;
  struct hk_held_partition *held; /* of the snapshot under way, n_held, likewise; their folders are closed with it */
  uint32_t n_held;
  struct hk_save_order order[2]; /* begin; end */

  /* both threads */
  atomic_bool failed; /* the one under way is to be given up */
  atomic_bool over;   /* the saver's thread is done with it */
  atomic_bool hurries;
  atomic_uint_fast64_t asks, answered;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  struct hk_save_order *first, **tail;
  bool quit;
  struct hk_saver_condition condition;
};

#endif
