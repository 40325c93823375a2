/* A stream of a GPU, and memory of the host by way of which everything is copied there and back: a copy from or to any other
 * memory is one that the calling thread cannot give up waiting for. Calls return a cudaError_t, or what they say. Thread: one at
 * a time. */
#ifndef HK_DESK_H
#define HK_DESK_H

#include <stddef.h>

/* Seconds that a device may need for any operation. Then it counts as hung until the process ends: no desk is opened there any
 * more, and closing one frees nothing. */
#define HK_DESK_PATIENCE 5
#define HK_DESK_LEAST (4u << 20)

struct CUstream_st; /* cudaStream_t points to it */

/* All zero: nothing to close. */
struct hk_desk {
  int device;
  struct CUstream_st *stream;
  char *memory; /* `size` bytes of the host, which the device reaches by itself */
  size_t size;
};

/* Makes the stream, and at least `size` bytes, on a device. After an error, too, hk_desk_close frees what exists. */
int hk_desk_open(struct hk_desk *desk, int device, size_t size);
/* `memory` of the device is freed, too. */
void hk_desk_close(struct hk_desk *desk, void *memory);
/* Waits for all operations; `failed`: the error at their launch. Returns 0, -ETIMEDOUT or -EIO. */
int hk_desk_wait(struct hk_desk *desk, int failed);
/* Copies bytes between the device (there) and the host (here), up to the device or down. Returns as hk_desk_wait. */
int hk_desk_up(struct hk_desk *desk, void *there, const void *here, size_t bytes);
int hk_desk_down(struct hk_desk *desk, void *here, const void *there, size_t bytes);
/* Returns `status`, the result of a call above, and describes it if it is not 0. */
int hk_desk_tell(int status, char *error, size_t size);

#endif
