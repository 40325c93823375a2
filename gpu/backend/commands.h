/* Commands: new bindings of slots, collected on the host and executed on the device before the next batch, so that adding a
 * million sensors needs only a few launches and no copy with a wait.
 *
 * They are written into blocks of pinned memory that the device reads in place. Of the commands not sent yet each slot has at
 * most one, its latest, so the device may execute them in any order.
 *
 * Thread: one (the shard's). */
#ifndef HK_COMMANDS_H
#define HK_COMMANDS_H

#include "gpu/backend/device_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUevent_st;

#define HK_COMMAND_BLOCKS 4

struct hk_command_block {
  unsigned char *memory;    /* pinned: commands from the start, images from the end */
  struct CUevent_st *taken; /* recorded after the launch that reads it */
};

/* Owner: the records that embed it. */
struct hk_commands {
  const struct hk_cuda_directory *directory; /* the directory of the records */
  struct CUstream_st *stream;
  struct hk_command_block block[HK_COMMAND_BLOCKS];
  uint32_t open;   /* block being written */
  uint32_t n;      /* number of commands in it, */
  uint32_t sent;   /* of which this many were sent */
  uint32_t images; /* offset of its images */
};

/* c: all zero except directory and stream. Returns 0 or a cudaError_t; call hk_commands_close in both cases. */
int hk_commands_open(struct hk_commands *c);
void hk_commands_close(struct hk_commands *c);

/* Adds a command for a slot; the caller fills in all fields except slot, image and bytes. *known: number of the slot's latest
 * command (any number if there was none), in and out. *image: room for `bytes` (a multiple of 16, 0 = none), which the caller
 * also fills in. slot = HK_CUDA_NONE: always a new command. Returns 0 or a cudaError_t: a block was full and could not be
 * sent. */
int hk_commands_put(struct hk_commands *c, uint32_t slot, uint32_t *known, uint32_t bytes, struct hk_cuda_command **out,
                    void **image);

/* Sends the collected commands. Returns 0 or a cudaError_t. */
int hk_commands_send(struct hk_commands *c);

/* Waits for an event. Returns 0, a cudaError_t, or cudaErrorTimeout if it did not occur within `seconds` seconds. */
int hk_cuda_await(struct CUevent_st *event, uint32_t seconds);

/* Longest wait for the device, in seconds, in calls that must wait: earlier batches may be long. */
#define HK_CUDA_PATIENCE 30

#ifdef __cplusplus
}
#endif
#endif
