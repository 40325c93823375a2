/* A warp on the CPU: what kernels ask of CUDA, for code that is to be seen to compute right where there is no GPU. Lanes are
 * contexts of one thread that take turns; at a collective each waits for all. So what is shared and what is exchanged behaves as
 * on a device, races do not: these are for compute-sanitizer. Include it before a .cuh file.
 *
 * Thread: one at a time. */
#ifndef HK_EMULATED_WARP_H
#define HK_EMULATED_WARP_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __align__(n) alignas(n)
#define __isGlobal(p) true
#define __isShared(p) true
#ifndef __clang__
#define __builtin_assume(x) ((void)0)
#endif

struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

static inline float2 make_float2(float x, float y)
{
  return { x, y };
}

static inline float4 make_float4(float x, float y, float z, float w)
{
  return { x, y, z, w };
}

static inline uint32_t __float_as_uint(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float __uint_as_float(uint32_t bits)
{
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

using std::max;
using std::min;

static struct {
  uint32_t x;
} threadIdx;

class emulated_warp
{
public:
  static constexpr uint32_t lanes = 32;

  /* Runs `body` by all lanes to its end. */
  static void run(const std::function<void()> &body)
  {
    emulated_warp warp(body);
    for (warp.ended = 0; warp.ended < lanes;)
      for (uint32_t lane = 0; lane < lanes; lane++)
        if (!warp.over[lane]) {
          threadIdx.x = lane;
          swapcontext(&warp.scheduler, &warp.context[lane]);
        }
  }

  /* What all lanes brought, once they have. */
  static const uint32_t *all(uint32_t mine)
  {
    emulated_warp *const warp = running;
    const uint32_t lane = threadIdx.x, turn = warp->turn[lane]++ % 2; /* the one before may still be read */
    warp->brought[turn][lane] = mine;
    swapcontext(&warp->context[lane], &warp->scheduler);
    return warp->brought[turn];
  }

private:
  static constexpr size_t stack_bytes = 1 << 16;
  explicit emulated_warp(const std::function<void()> &body) : body(body), stacks(lanes * stack_bytes)
  {
    running = this;
    for (uint32_t lane = 0; lane < lanes; lane++) {
      getcontext(&context[lane]);
      context[lane].uc_stack.ss_sp = &stacks[lane * stack_bytes];
      context[lane].uc_stack.ss_size = stack_bytes;
      context[lane].uc_link = &scheduler;
      makecontext(&context[lane], enter, 0);
    }
  }

  static void enter()
  {
    running->body();
    running->over[threadIdx.x] = true;
    running->ended++;
  }

  static inline emulated_warp *running;
  const std::function<void()> &body;
  std::vector<char> stacks;
  ucontext_t scheduler, context[lanes];
  uint32_t brought[2][lanes], turn[lanes] = {}, ended = 0;
  bool over[lanes] = {};
};

static inline void __syncwarp()
{
  (void)emulated_warp::all(0);
}

static inline uint32_t __reduce_min_sync(uint32_t, uint32_t x)
{
  const uint32_t *const all = emulated_warp::all(x);
  return *std::min_element(all, all + emulated_warp::lanes);
}

static inline uint32_t __reduce_max_sync(uint32_t, uint32_t x)
{
  const uint32_t *const all = emulated_warp::all(x);
  return *std::max_element(all, all + emulated_warp::lanes);
}

#endif
