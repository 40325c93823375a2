/* A warp on the CPU: the functions of CUDA that kernels use, so that their results can be tested without a GPU. Lanes are
 * contexts of one thread that take turns; at a collective each waits for all. So shared memory and exchanges behave as
 * on a device; races do not, they are for compute-sanitizer. Include this file before a .cuh file.
 *
 * Thread: one at a time. */
#ifndef HK_EMULATED_WARP_H
#define HK_EMULATED_WARP_H

#undef _FORTIFY_SOURCE /* which forbids jumps from one stack to another */
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
#define __grid_constant__
#define __isGlobal(p) true
#define __isShared(p) true
#ifndef __clang__
#define __builtin_assume(x) ((void)0)
#endif

struct float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

struct alignas(16) int4 {
  int32_t x, y, z, w;
};
struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

template <class T> static inline T __ldg(const T *at)
{
  return *at;
}

template <class T> static inline T __ldcg(const T *at)
{
  return *at;
}

template <class T> static inline T __ldcs(const T *at)
{
  return *at;
}

static inline float2 make_float2(float x, float y)
{
  return { x, y };
}

static inline float4 make_float4(float x, float y, float z, float w)
{
  return { x, y, z, w };
}

static inline double2 make_double2(double x, double y)
{
  return { x, y };
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

static inline int __float_as_int(float x)
{
  return (int)__float_as_uint(x);
}

static inline float __int_as_float(int bits)
{
  return __uint_as_float((uint32_t)bits);
}

static inline int __vimin3_s32(int a, int b, int c)
{
  return std::min(std::min(a, b), c);
}

static inline int __vimin_s32_relu(int a, int b)
{
  return std::max(std::min(a, b), 0);
}

static inline float __fmaf_rn(float x, float y, float z)
{
  return std::fma(x, y, z);
}

static inline float __fdiv_rn(float x, float y)
{
  return x / y;
}

/* A half, by IEEE 754. */
struct half_bits {
  uint16_t bits;
};

static inline half_bits __ushort_as_half(uint16_t bits)
{
  return { bits };
}

static inline float __half2float(half_bits h)
{
  const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : std::ldexp((float)(exponent ? 1024 + fraction : fraction), (exponent ? exponent : 1) - 25);
  return h.bits & 0x8000 ? -size : size;
}

/* Bytes of a and b, 0..3 and 4..7, by the four lowest digits of the selector. */
static inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{
  const uint64_t both = (uint64_t)b << 32 | a;
  uint32_t out = 0;
  for (int k = 0; k < 4; k++)
    out |= (uint32_t)(both >> 8 * (selector >> 4 * k & 7) & 255) << 8 * k;
  return out;
}

static inline uint32_t __vminu2(uint32_t a, uint32_t b)
{
  return std::min(a >> 16, b >> 16) << 16 | std::min(a & 65535, b & 65535);
}

static inline uint32_t __vmaxu2(uint32_t a, uint32_t b)
{
  return std::max(a >> 16, b >> 16) << 16 | std::max(a & 65535, b & 65535);
}

static inline int __double2hiint(double x)
{
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (int)(bits >> 32);
}

static inline double __hiloint2double(int high, int low)
{
  const uint64_t bits = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int __popc(uint32_t x)
{
  return __builtin_popcount(x);
}

static inline int __ffs(uint32_t x)
{
  return __builtin_ffs((int)x);
}

static inline int __ffsll(long long x)
{
  return __builtin_ffsll(x);
}

static inline float rsqrtf(float x)
{
  return 1 / std::sqrt(x);
}

static inline double rsqrt(double x)
{
  return 1 / std::sqrt(x);
}

static inline uint32_t atomicOr(uint32_t *at, uint32_t bits)
{
  const uint32_t before = *at;
  *at |= bits;
  return before;
}

static inline uint32_t atomicAdd(uint32_t *at, uint32_t by)
{
  const uint32_t before = *at;
  *at += by;
  return before;
}

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
  return { x, y, z, w };
}

static inline float __fdividef(float x, float y)
{
  return x / y;
}

using std::fabs;
using std::max;
using std::min;

static struct {
  uint32_t x;
} threadIdx, blockIdx;
[[maybe_unused]] static constexpr struct {
  uint32_t x;
} gridDim = { 1 }, blockDim = { 32 };

class emulated_warp
{
public:
  static constexpr uint32_t lanes = 32;

  /* Runs `by_all` by all lanes to its end. */
  static void run(const std::function<void()> &by_all)
  {
    if (ended < lanes) /* the first one, or the last one did not come to its end */
      std::fill_n(begun, lanes, false);
    body = &by_all;
    ended = 0;
    std::fill_n(over, lanes, false);
    threadIdx.x = lanes - 1;
    if (!__builtin_setjmp(idle))
      go_on(next());
  }

  /* The values of all lanes at a collective; valid until the next collective but one. */
  static const uint64_t *all(uint64_t mine)
  {
    const uint32_t lane = threadIdx.x;
    uint64_t *const now = brought[turn[lane]++ % 2]; /* the one before may still be read */
    now[lane] = mine;
    leave();
    return now;
  }

private:
  static constexpr size_t stack_bytes = 1 << 16;

  /* A lane goes through one body after the other, so that its context is made once. */
  static void enter()
  {
    for (;;) {
      turn[threadIdx.x] = 0;
      (*body)();
      over[threadIdx.x] = true;
      ended++;
      leave();
    }
  }

  /* The next lane after the running one that has not ended. */
  static uint32_t next()
  {
    uint32_t lane = threadIdx.x;
    do
      lane = (lane + 1) % lanes;
    while (over[lane]);
    return lane;
  }

  /* Lets the others go on, until it is the running lane's turn again. */
  [[gnu::noinline]] static void leave()
  {
    if (!__builtin_setjmp(left[threadIdx.x])) {
      if (ended == lanes)
        __builtin_longjmp(idle, 1);
      go_on(next());
    }
  }

  /* Contexts begin a lane; afterwards jumps switch lanes: the compiler's own, which save no more than they must. */
  [[noreturn, gnu::noinline]] static void go_on(uint32_t lane)
  {
    threadIdx.x = lane;
    if (begun[lane])
      __builtin_longjmp(left[lane], 1);
    begun[lane] = true;
    static ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[lane];
    context.uc_stack.ss_size = stack_bytes;
    makecontext(&context, enter, 0);
    setcontext(&context);
    abort();
  }

  static inline const std::function<void()> *body;
  alignas(16) static inline char stacks[lanes][stack_bytes];
  static inline void *idle[5], *left[lanes][5];
  static inline uint64_t brought[2][lanes];
  static inline uint32_t turn[lanes], ended;
  static inline bool begun[lanes], over[lanes];
};

static inline void __syncwarp()
{
  (void)emulated_warp::all(0);
}

static inline uint32_t __reduce_min_sync(uint32_t, uint32_t x)
{
  const uint64_t *const all = emulated_warp::all(x);
  return (uint32_t)*std::min_element(all, all + emulated_warp::lanes);
}

static inline uint32_t __reduce_max_sync(uint32_t, uint32_t x)
{
  const uint64_t *const all = emulated_warp::all(x);
  return (uint32_t)*std::max_element(all, all + emulated_warp::lanes);
}

static inline uint32_t __reduce_add_sync(uint32_t, uint32_t x)
{
  const uint64_t *const all = emulated_warp::all(x);
  uint32_t sum = 0;
  for (uint32_t lane = 0; lane < emulated_warp::lanes; lane++)
    sum += (uint32_t)all[lane];
  return sum;
}

static inline uint32_t __ballot_sync(uint32_t, bool mine)
{
  const uint64_t *const all = emulated_warp::all(mine);
  uint32_t bits = 0;
  for (uint32_t lane = 0; lane < emulated_warp::lanes; lane++)
    bits |= (uint32_t)all[lane] << lane;
  return bits;
}

static inline bool __any_sync(uint32_t mask, bool mine)
{
  return __ballot_sync(mask, mine) != 0;
}

/* A block of one warp. */
static inline void __syncthreads()
{
  __syncwarp();
}

static inline bool __syncthreads_or(bool mine)
{
  return __any_sync(~0u, mine);
}

static inline void __threadfence_system() {}

template <class T> static inline T __shfl_sync(uint32_t, T mine, uint32_t from)
{
  uint64_t bits = 0;
  memcpy(&bits, &mine, sizeof mine);
  memcpy(&mine, &emulated_warp::all(bits)[from % emulated_warp::lanes], sizeof mine);
  return mine;
}

template <class T> static inline T __shfl_up_sync(uint32_t mask, T mine, uint32_t by)
{
  return __shfl_sync(mask, mine, threadIdx.x < by ? threadIdx.x : threadIdx.x - by);
}

template <class T> static inline T __shfl_down_sync(uint32_t mask, T mine, uint32_t by)
{
  return __shfl_sync(mask, mine, threadIdx.x + by < emulated_warp::lanes ? threadIdx.x + by : threadIdx.x);
}

template <class T> static inline T __shfl_xor_sync(uint32_t mask, T mine, uint32_t by)
{
  return __shfl_sync(mask, mine, threadIdx.x ^ by);
}

/* Asynchronous copies of the lanes. What is copied is what stood there when the copy began, and it arrives when its group is
 * waited for: no kernel may rely on anything between. */
struct emulated_copy {
  void *to;
  std::vector<char> bytes;
};
static std::vector<std::vector<emulated_copy>> emulated_copies[emulated_warp::lanes]; /* groups, of which the last is open */

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes)
{
  if ((uintptr_t)to % bytes != 0 || (uintptr_t)from % bytes != 0)
    abort(); /* as on a device */
  auto &groups = emulated_copies[threadIdx.x];
  if (groups.empty())
    groups.emplace_back();
  groups.back().push_back({ to, std::vector<char>((const char *)from, (const char *)from + bytes) });
}

static inline void __pipeline_commit()
{
  auto &groups = emulated_copies[threadIdx.x];
  if (groups.empty())
    groups.emplace_back();
  groups.emplace_back();
}

/* Waits for all groups but the last n. */
static inline void __pipeline_wait_prior(size_t n)
{
  auto &groups = emulated_copies[threadIdx.x];
  while (groups.size() > n + 1) {
    for (const emulated_copy &copy : groups.front())
      memcpy(copy.to, copy.bytes.data(), copy.bytes.size());
    groups.erase(groups.begin());
  }
}

/* Empty assembly statements, by which kernels keep the compiler from removing values, are left out here. */
#define asm
#define volatile(...)

#endif
