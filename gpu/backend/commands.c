/* Collecting and sending commands: see commands.h. Blocks are used in turn; one that the device has not read yet is waited for,
 * which happens only when some hundred thousand sensors are added while one batch is scored. */
#include "gpu/backend/commands.h"
#include "cpu/monotonic.h"
#include "gpu/backend/batch_kernels.h"

#include <cuda_runtime_api.h>
#include <time.h>

#define BLOCK_BYTES (4u << 20)

int hk_commands_open(struct hk_commands *c)
{
  cudaError_t failed = cudaSuccess;
  for (uint32_t i = 0; i < HK_COMMAND_BLOCKS && !failed; i++) {
    failed = cudaMallocHost((void **)&c->block[i].memory, BLOCK_BYTES);
    if (!failed)
      failed = cudaEventCreateWithFlags(&c->block[i].taken, cudaEventDisableTiming);
  }
  c->images = BLOCK_BYTES;
  return (int)failed;
}

void hk_commands_close(struct hk_commands *c)
{
  for (uint32_t i = 0; i < HK_COMMAND_BLOCKS; i++) {
    (void)cudaFreeHost(c->block[i].memory); /* a device that fails here has failed before */
    if (c->block[i].taken)
      (void)cudaEventDestroy(c->block[i].taken);
  }
}

int hk_commands_put(struct hk_commands *c, uint32_t slot, uint32_t *known, uint32_t bytes, struct hk_cuda_command **out,
                    void **image)
{
  struct hk_cuda_command *commands = (struct hk_cuda_command *)c->block[c->open].memory;
  bool again = slot != HK_CUDA_NONE && *known >= c->sent && *known < c->n && commands[*known].slot == slot;
  if ((c->n + !again) * sizeof *commands + bytes > c->images) {
    int failed = hk_commands_send(c);
    if (!failed)
      failed = hk_cuda_await(c->block[(c->open + 1) % HK_COMMAND_BLOCKS].taken, HK_CUDA_PATIENCE);
    if (failed)
      return failed;
    c->open = (c->open + 1) % HK_COMMAND_BLOCKS;
    c->n = c->sent = 0;
    c->images = BLOCK_BYTES;
    commands = (struct hk_cuda_command *)c->block[c->open].memory;
    again = false;
  }
  if (!again)
    *known = c->n++;
  c->images -= bytes;
  *out = &commands[*known];
  **out = (struct hk_cuda_command){ .slot = slot, .image = bytes ? c->images : 0, .bytes = bytes };
  *image = c->block[c->open].memory + c->images;
  return 0;
}

int hk_commands_send(struct hk_commands *c)
{
  if (c->sent == c->n)
    return 0;
  const struct hk_command_block *block = &c->block[c->open];
  int failed = hk_cuda_apply(c->stream, c->directory, block->memory, c->sent, c->n - c->sent);
  if (!failed)
    failed = (int)cudaEventRecord(block->taken, c->stream);
  c->sent = c->n;
  return failed;
}

int hk_cuda_await(struct CUevent_st *event, uint32_t seconds)
{
  const struct timespec pause = { 0, 20000 };
  for (const int64_t end = hk_monotonic() + seconds * 1000000000ll;; nanosleep(&pause, NULL)) {
    const cudaError_t state = cudaEventQuery(event);
    if (state != cudaErrorNotReady)
      return (int)state;
    if (hk_monotonic() > end)
      return (int)cudaErrorTimeout;
  }
}
