/* Commands: what slots are to be, collected on the host and carried out on the device ahead of the next batch, so that adding
 * a million sensors costs a few launches and no copy that anybody waits for.
 *
 * They are written into blocks of pinned memory that the device reads in place. Among those not sent yet, a slot has one at most,
 * its last word, so that the device may carry them out in any order.
 *
 * Thread: one (the shard's). */
#ifndef HK_COMMANDS_H
#define HK_COMMANDS_H

#include "gpu/backend/device_types.h"

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUevent_st;

#define HK_COMMAND_BLOCKS 4

struct hk_command_block {
  unsigned char *memory;    /* pinned: commands from the start, images from the end */
  struct CUevent_st *taken; /* recorded behind the launch that reads it */
};

/* Owner: the records that embed it. */
struct hk_commands {
  const struct hk_cuda_directory *directory; /* the records' */
  struct CUstream_st *stream;
  struct hk_command_block block[HK_COMMAND_BLOCKS];
  uint32_t open;   /* block being written */
  uint32_t n;      /* commands in it, */
  uint32_t sent;   /* of which so many have been sent */
  uint32_t images; /* where its images begin */
};

/* c: all zero but directory and stream. 0 or a cudaError_t; close is due either way. */
int hk_commands_open(struct hk_commands *c);
void hk_commands_close(struct hk_commands *c);

/* A command for a slot, all of it for the caller to fill in but slot, image and bytes; at `known`, the number of the slot's
 * latest command (any number if there was none), stands its number. *image: room for `bytes` (a multiple of 16, 0 = none), to be
 * filled in too. slot = HK_CUDA_NONE: always a new one. 0 or a cudaError_t: a block was full and could not be sent. */
int hk_commands_put(struct hk_commands *c, uint32_t slot, uint32_t *known, uint32_t bytes, struct hk_cuda_command **out,
                    void **image);

/* Sends what was collected. 0 or a cudaError_t. */
int hk_commands_send(struct hk_commands *c);

/* Waits until an event has come to pass: 0, a cudaError_t, or cudaErrorTimeout when the device has done nothing of the kind for
 * so many seconds. */
int hk_cuda_await(struct CUevent_st *event, uint32_t seconds);

/* ns of a clock that only goes forward. */
static inline int64_t hk_cuda_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Longest wait for the device, in seconds, where a call cannot do without: batches before it may be long ones. */
#define HK_CUDA_PATIENCE 30

#ifdef __cplusplus
}
#endif
#endif
