/* The pass that links a sensor's newest node with all others, by a warp.
 *
 * The columns come in chunks from device memory to shared memory, asynchronously: while a chunk is compared, the next one is on
 * its way. So a warp hardly waits for memory, which few warps a multiprocessor could not hide. Nodes that take the newest one as
 * a neighbour are noted, and their lists changed later, a node a lane: each such change is a chain of loads, and few nodes have
 * one. */
#ifndef HK_GRAPH_LINK_CUH
#define HK_GRAPH_LINK_CUH

#include "gpu/graph/sensor.cuh"

#define HK_AT_ONCE 4u /* nodes that a lane compares together */
#define HK_CHUNK (HK_AT_ONCE * HK_WARP)
#define HK_CHUNKS 2u  /* in shared memory: the one that is compared, and those on their way */
#define HK_OFFERS 64u /* notes that a warp has room for */

/* Nodes of a sensor at successive places, from a multiple of 4 on, because copies are of 16 bytes. Products are at lags, whose
 * multiple of 4 is another; so up to 3 others come before them. */
struct __align__(16) hk_graph_chunk
{
  float product[HK_CHUNK + 4];
  float half[HK_CHUNK], off[HK_CHUNK], inverse[HK_CHUNK], log[HK_CHUNK], worst[HK_CHUNK];
};

/* A node whose list of neighbours the newest node of its sensor enters. */
struct hk_graph_offer {
  float similarity;
  uint16_t sensor; /* number among the warp's */
  uint16_t place;
};

/* Maps a number to an integer of the same order; both zeros have the same integer. */
static __device__ __forceinline__ uint32_t hk_ordered(float x)
{
  const uint32_t bits = __float_as_uint(x + 0.0f);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* A pass over a sensor's nodes. */
struct hk_graph_pass {
  struct hk_graph_node node; /* the newest */
  uint32_t who;              /* number of the sensor among the warp's */
  float *product;            /* of the oldest node */
  const float *half, *mean, *worst;
  uint32_t room, k;
  uint32_t local;     /* nodes closer than this are of one time, */
  float locality;     /* see hk_graph_locally */
  uint32_t oldest, n; /* place of the oldest node; number of nodes that are compared */
  uint32_t aside;     /* products before the first of a chunk */
  uint32_t before;    /* chunks before the end of the columns; those behind begin at place 0 */
};

/* Shared memory of a warp for links: what registers have no room for. */
struct hk_graph_desk {
  struct hk_graph_pass pass;
  uint32_t n_offers; /* notes, */
  struct hk_graph_offer offer[HK_OFFERS];
};

/* The most similar nodes found so far: lane q has number q, the best first; of equals, the older. lag 0: none. */
struct hk_graph_best {
  float similarity;
  uint32_t lag;
  float least; /* similarity of the last of the k */
};

/* Merges a node of each lane into the k best, all of which are older; that of a higher lane is younger. */
static __device__ __forceinline__ void hk_best_offer(struct hk_graph_best *b, uint32_t k, float similarity, uint32_t lag)
{
  for (;;) {
    const bool better = similarity > b->least;
    if (!__any_sync(HK_ALL, better))
      return;
    const uint32_t mine = better ? hk_ordered(similarity) : 0, most = __reduce_max_sync(HK_ALL, mine);
    const uint32_t who = __ffs(__ballot_sync(HK_ALL, mine == most)) - 1;
    const float its = __shfl_sync(HK_ALL, similarity, who), above = __shfl_up_sync(HK_ALL, b->similarity, 1);
    const uint32_t its_lag = __shfl_sync(HK_ALL, lag, who), above_lag = __shfl_up_sync(HK_ALL, b->lag, 1);
    if (hk_lane() == who)
      similarity = -INFINITY;
    if (its > b->similarity) {
      const bool down = hk_lane() > 0 && its > above;
      b->similarity = down ? above : its;
      b->lag = down ? above_lag : its_lag;
    }
    b->least = __shfl_sync(HK_ALL, b->similarity, k - 1);
  }
}

/* Carries out all notes, a lane each, and forgets them. sensors: the warp's. */
static __device__ __noinline__ void hk_warp_offers(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk)
{
  __syncwarp();
  for (uint32_t i = hk_lane(); i < desk->n_offers; i += HK_WARP) {
    const struct hk_graph_offer offer = desk->offer[i];
    const struct hk_graph_view *v = &sensors[offer.sensor].view;
    hk_graph_offer(v, offer.place, v->graph->name, offer.similarity);
    hk_graph_middle(v, offer.place);
  }
  __syncwarp();
  if (hk_lane() == 0)
    desk->n_offers = 0;
  __syncwarp();
}

/* Place at which a chunk begins. */
static __device__ __forceinline__ uint32_t hk_chunk_place(const struct hk_graph_pass *p, uint32_t chunk)
{
  return chunk < p->before ? (p->oldest & ~3u) + chunk * HK_CHUNK : (chunk - p->before) * HK_CHUNK;
}

/* Number of the node at place `at` of a chunk, counted from the oldest one: less than 0, as a huge number, before that. */
static __device__ __forceinline__ uint32_t hk_chunk_node(const struct hk_graph_pass *p, uint32_t chunk, uint32_t at)
{
  return at - p->oldest + (chunk < p->before ? 0 : p->room);
}

/* Begins to copy a chunk. */
static __device__ __forceinline__ void hk_chunk_fetch(const struct hk_graph_pass *p, uint32_t chunk, struct hk_graph_chunk *to)
{
  const uint32_t at = hk_chunk_place(p, chunk), i = hk_chunk_node(p, chunk, at), quad = 4 * hk_lane();
  const uint32_t left = min(min(p->room - at, p->n - i), HK_CHUNK); /* also where i is less than 0 */
  const float *const product = p->product + (int32_t)(i - p->aside), *const half = p->half + at + quad;
  if (quad < min(left + p->aside, HK_CHUNK))
    __pipeline_memcpy_async(to->product + quad, product + quad, 16);
  if (quad == 0 && HK_CHUNK < left + p->aside)
    __pipeline_memcpy_async(to->product + HK_CHUNK, product + HK_CHUNK, 16);
  if (quad < left) {
    __pipeline_memcpy_async(to->half + quad, half, 16);
    __pipeline_memcpy_async(to->off + quad, half + p->room, 16);
    __pipeline_memcpy_async(to->inverse + quad, half + 2 * p->room, 16);
    __pipeline_memcpy_async(to->log + quad, half + 3 * p->room, 16);
    __pipeline_memcpy_async(to->worst + quad, p->worst + at + quad, 16);
  }
}

/* Notes the nodes at place `at` of the lanes that take the newest node. */
static __device__ __noinline__ void hk_warp_note(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk,
                                                 float similarity, uint32_t at, bool take)
{
  const uint32_t all = __ballot_sync(HK_ALL, take), lane = hk_lane();
  if (desk->n_offers + __popc(all) > HK_OFFERS)
    hk_warp_offers(sensors, desk);
  const uint32_t n = desk->n_offers;
  if (take) {
    const struct hk_graph_view *v = &sensors[desk->pass.who].view;
    for (uint32_t q = 0; q < desk->pass.k; q++) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(v->similarity + q * v->room + at));
      asm volatile("prefetch.global.L2 [%0];" ::"l"(v->neighbour + q * v->room + at));
    }
    desk->offer[n + __popc(all & ((1u << lane) - 1))] = { similarity, (uint16_t)desk->pass.who, (uint16_t)at };
  }
  __syncwarp(); /* all have read the number */
  if (lane == 0)
    desk->n_offers = n + __popc(all);
  __syncwarp();
}

/* Compares the newest node with those of a chunk: products, similarities, notes of nodes whose list it enters; best: its own
 * list. The lane's first node has number i from the oldest one, place `at`, and is `lag` older than the newest. WHOLE: all are
 * compared; else those before the end of the nodes and of the columns. */
template <bool WHOLE, bool LEVELS>
static __device__ __forceinline__ void hk_warp_nodes(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk,
                                                     const struct hk_graph_chunk *chunk, struct hk_graph_best *best, uint32_t i,
                                                     uint32_t at, uint32_t lag)
{
  const struct hk_graph_pass *const p = &desk->pass;
  const uint32_t lane = hk_lane();
  float similarity[HK_AT_ONCE], top = -INFINITY;
  uint32_t takes = 0; /* bit u: node u takes the newest one */
#pragma unroll
  for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
    const uint32_t far = u * HK_WARP, q = far + lane;
    similarity[u] = -INFINITY;
    if (!WHOLE && (i + far >= p->n || at + far >= p->room))
      continue;
    const float product = chunk->product[p->aside + q] + p->node.half * chunk->off[q] +
                          p->node.off * chunk->half[q]; /* not contracted, as on the host */
    hk_global(p->product)[(int32_t)(i + far)] = product;
    const float spreads = p->node.log - chunk->log[q];
    similarity[u] = product * (p->node.inverse * chunk->inverse[q]) - (float)HK_GRAPH_SPREAD * spreads * spreads;
    if (LEVELS) {
      const float levels = p->node.level * (p->node.mean - hk_global(p->mean)[at + far]);
      similarity[u] -= levels * levels;
    }
  }
  const uint32_t local = p->local;
  if (lag < local + (HK_AT_ONCE - 1) * HK_WARP) {
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      if (lag - u * HK_WARP < local)
        similarity[u] = hk_graph_locally(similarity[u], p->locality);
  }
#pragma unroll
  for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
    takes |= (similarity[u] > chunk->worst[u * HK_WARP + lane] ? 1u : 0u) << u; /* never -infinity, beside the nodes */
    top = fmaxf(top, similarity[u]);
  }
  if (__any_sync(HK_ALL, takes)) { /* rare */
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      hk_warp_note(sensors, desk, similarity[u], at + u * HK_WARP, takes >> u & 1);
  }
  if (__any_sync(HK_ALL, top > best->least)) {
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      hk_best_offer(best, p->k, similarity[u], lag - u * HK_WARP);
  }
}

/* Prepares the pass for sensor number `who`. Returns its number of chunks. */
static __device__ __forceinline__ uint32_t hk_warp_prepare(const struct hk_graph_sensor *sensors, uint32_t who,
                                                           struct hk_graph_pass *p)
{
  const struct hk_graph_view *v = &sensors[who].view;
  const uint32_t live = v->graph->live, nearest = hk_graph_exclusion(v), n = live > nearest ? live - nearest : 0;
  const uint32_t oldest = hk_graph_place(v, live - 1), k = v->detector->neighbours;
  const uint32_t end = min(v->room, oldest + n), behind = oldest + n - end; /* places behind the end of the columns */
  const uint32_t before = (end - (oldest & ~3u) + HK_CHUNK - 1) / HK_CHUNK;
  if (hk_lane() == 0)
    *p = { sensors[who].node,
           who,
           v->product + (v->most - live),
           v->half,
           v->mean,
           v->similarity + (k - 1) * v->room,
           v->room,
           k,
           hk_graph_local(v),
           v->detector->locality,
           oldest,
           n,
           (v->most - live - oldest) & 3u,
           before };
  __syncwarp();
  return n > 0 ? before + (behind + HK_CHUNK - 1) / HK_CHUNK : 0;
}

/* Begins to copy the first chunks. */
static __device__ __forceinline__ void hk_warp_fetch(const struct hk_graph_pass *p, uint32_t n_chunks,
                                                     struct hk_graph_chunk *chunks)
{
#pragma unroll
  for (uint32_t c = 0; c + 1 < HK_CHUNKS; c++) {
    if (c < n_chunks)
      hk_chunk_fetch(p, c, &chunks[c]);
    __pipeline_commit();
  }
}

/* As hk_graph_link after hk_warp_prepare and hk_warp_fetch, but that the lists of other nodes are changed by hk_warp_offers;
 * returns the newest node's neighbours. fresh: the product of the oldest node, which came after it was fetched. */
template <bool LEVELS>
static __device__ __forceinline__ struct hk_graph_best hk_warp_link(const struct hk_graph_sensor *sensors, uint32_t live,
                                                                    float fresh, uint32_t n_chunks, struct hk_graph_desk *desk,
                                                                    struct hk_graph_chunk *chunks)
{
  const struct hk_graph_pass *const p = &desk->pass;
  const uint32_t lane = hk_lane();
  struct hk_graph_best best = { -INFINITY, 0, -INFINITY };
#pragma unroll 1
  for (uint32_t c = 0; c < n_chunks; c++) {
    if (c + HK_CHUNKS - 1 < n_chunks)
      hk_chunk_fetch(p, c + HK_CHUNKS - 1, &chunks[(c + HK_CHUNKS - 1) % HK_CHUNKS]);
    __pipeline_commit();
    __pipeline_wait_prior(HK_CHUNKS - 1);
    __syncwarp();
    if (c == 0) {
      if (lane == 0)
        chunks[0].product[p->aside + (p->oldest & 3u)] = fresh;
      __syncwarp();
    }
    const struct hk_graph_chunk *const chunk = &chunks[c % HK_CHUNKS];
    const uint32_t at = hk_chunk_place(p, c), i = hk_chunk_node(p, c, at);
    if (i < p->n && i + HK_CHUNK <= p->n && at + HK_CHUNK <= p->room)
      hk_warp_nodes<true, LEVELS>(sensors, desk, chunk, &best, i + lane, at + lane, live - 1 - i - lane);
    else
      hk_warp_nodes<false, LEVELS>(sensors, desk, chunk, &best, i + lane, at + lane, live - 1 - i - lane);
    __syncwarp(); /* the chunk's place is that of one that will come */
  }
  return best;
}

#endif
