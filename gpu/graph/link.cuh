/* The passes that link the newest nodes of a warp's sensors with all their others.
 *
 * The columns come in chunks from device memory to shared memory, asynchronously: while a chunk is compared, the next one is on
 * its way, which may be the first of the next sensor, and the L2 cache is told of the one behind that. So a warp hardly waits for
 * memory, which few warps a multiprocessor could not hide. Nodes that take the newest one as a neighbour are noted, and their
 * lists changed later, a node a lane: each such change is a chain of loads, and few nodes have one. */
#ifndef HK_GRAPH_LINK_CUH
#define HK_GRAPH_LINK_CUH

#include "gpu/graph/sensor.cuh"

#define HK_AT_ONCE 4u /* nodes that a lane compares together */
#define HK_CHUNK (HK_AT_ONCE * HK_WARP)
#define HK_CHUNKS 2u  /* in shared memory: the one that is compared, and the one on its way */
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

/* A pass over a sensor's nodes. What is read together stands together. */
struct __align__(16) hk_graph_pass
{
  float *product; /* of the oldest node */
  const float *half, *worst;
  uint32_t room;
  uint32_t n;     /* nodes that are compared */
  uint32_t aside; /* products before the first of a chunk */
  uint32_t who;   /* number of the sensor among the warp's */
  uint32_t k;
  struct hk_graph_node node; /* the newest */
  uint32_t local;            /* nodes closer than this are of one time, */
  uint32_t nearest;          /* lag of the youngest that is compared */
  float locality;            /* see hk_graph_locally */
  const float *mean;
};

/* Shared memory of a warp for links: what registers have no room for. */
struct hk_graph_desk {
  struct hk_graph_pass pass[2]; /* that of the nodes compared now, and that of the chunk on its way */
  uint32_t n_offers;            /* notes, */
  struct hk_graph_offer offer[HK_OFFERS];
};

/* The most similar nodes found so far: lane q has number q, the best first; of equals, the older. lag 0: none. */
struct hk_graph_best {
  float similarity;
  uint32_t lag;
  float least; /* similarity of the last of the k */
};

/* The first of a lane's nodes whose similarity is `top`, their greatest. */
static __device__ __forceinline__ uint32_t hk_nodes_first(const float *similarity, float top)
{
  uint32_t first = 0;
#pragma unroll
  for (uint32_t u = HK_AT_ONCE; u-- > 0;)
    first = similarity[u] == top ? u : first;
  return first;
}

/* Merges the nodes of a chunk into the k best, all of which are older. Those of a lane are HK_WARP lags apart, the oldest first,
 * of `lag`; those of the next lane are younger by 1. The most similar comes first, so few that others drive out enter at all. */
static __device__ __forceinline__ void hk_best_offer(struct hk_graph_best *b, uint32_t k, float *similarity, float top,
                                                     uint32_t lag)
{
  const uint32_t lane = hk_lane();
  for (;;) {
    const bool better = top > b->least;
    if (!__any_sync(HK_ALL, better))
      return;
    const uint32_t mine = better ? hk_ordered(top) : 0, most = __reduce_max_sync(HK_ALL, mine);
    const uint32_t own = hk_nodes_first(similarity, top), number = own * HK_WARP + lane;
    const uint32_t first = __reduce_min_sync(HK_ALL, mine == most ? number : HK_CHUNK), who = first % HK_WARP;
    float value = top; /* but for the sign of a zero */
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      value = own == u ? similarity[u] : value;
    const float its = __shfl_sync(HK_ALL, value, who), above = __shfl_up_sync(HK_ALL, b->similarity, 1);
    const uint32_t its_lag = lag + lane - first, above_lag = __shfl_up_sync(HK_ALL, b->lag, 1);
    if (lane == who) {
      top = -INFINITY;
#pragma unroll
      for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
        similarity[u] = own == u ? -INFINITY : similarity[u];
        top = fmaxf(top, similarity[u]);
      }
    }
    if (its > b->similarity) {
      const bool down = lane > 0 && its > above;
      b->similarity = down ? above : its;
      b->lag = down ? above_lag : its_lag;
    }
    b->least = __shfl_sync(HK_ALL, b->similarity, k - 1);
  }
}

/* As hk_graph_offer and hk_graph_middle, for the newest node's name. All numbers of the list are loaded together, and none has an
 * index that the compiler does not know: such are in device memory. By a lane. */
static __device__ __forceinline__ void hk_lane_offer(const struct hk_graph_view *v, uint32_t place, float similarity)
{
  const uint32_t k = v->detector->neighbours, room = v->room;
  const uint16_t newest = v->graph->name;
  float *const best = hk_global(v->similarity) + place;
  uint16_t *const neighbour = hk_global(v->neighbour) + place;
  float its[HK_NEIGHBOURS_MAX];
  uint32_t age[HK_NEIGHBOURS_MAX], at = 0; /* at: place of the new one in the list */
#pragma unroll
  for (uint32_t q = 0; q < HK_NEIGHBOURS_MAX; q++) {
    its[q] = q < k ? best[q * room] : 0;
    age[q] = q < k ? (uint16_t)(newest - neighbour[q * room]) : 0;
  }
#pragma unroll
  for (uint32_t q = 0; q < HK_NEIGHBOURS_MAX; q++)
    at += q < k && !(its[q] < similarity);
#pragma unroll
  for (uint32_t q = HK_NEIGHBOURS_MAX; q-- > 0;) {
    const bool moves = q > at;
    age[q] = q < at ? age[q] : moves ? age[q > 0 ? q - 1 : 0] : 0;
    if (q < at || q >= k)
      continue;
    best[q * room] = moves ? its[q > 0 ? q - 1 : 0] : similarity;
    neighbour[q * room] = (uint16_t)(newest - age[q]);
  }
  uint32_t median = 0;
#pragma unroll
  for (uint32_t q = 0; q < HK_NEIGHBOURS_MAX; q++) {
    uint32_t older = 0;
#pragma unroll
    for (uint32_t other = 0; other < HK_NEIGHBOURS_MAX; other++)
      older += other < k && (age[other] > age[q] || (age[other] == age[q] && other < q));
    median = q < k && older == k - (k + 1) / 2 ? age[q] : median;
  }
  v->median[place] = (uint16_t)(newest - median);
}

/* Carries out all notes, a lane each, and forgets them. sensors: the warp's. A function of its own, because its code is long. */
static __device__ __noinline__ void hk_warp_offers(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk)
{
  __syncwarp();
  for (uint32_t i = hk_lane(); i < desk->n_offers; i += HK_WARP) {
    const struct hk_graph_offer offer = desk->offer[i];
    hk_lane_offer(&sensors[offer.sensor].view, offer.place, offer.similarity);
  }
  __syncwarp();
  if (hk_lane() == 0)
    desk->n_offers = 0;
  __syncwarp();
}

/* The same where they are too many while nodes are compared, with few registers, which are needed there. */
static __device__ __noinline__ void hk_warp_offers_early(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk)
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

/* Notes the nodes that take the newest node. Bit u of takes: the lane's node at place `at` + u HK_WARP does, whose similarity is
 * number u. */
static __device__ __forceinline__ void hk_warp_note(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk,
                                                    uint32_t who, const float *similarity, uint32_t at, uint32_t takes)
{
  const struct hk_graph_view *v = &sensors[who].view;
  const uint32_t lane = hk_lane(), k = v->detector->neighbours;
  for (uint32_t all = __ballot_sync(HK_ALL, takes); all != 0; all = __ballot_sync(HK_ALL, takes)) {
    if (desk->n_offers + __popc(all) > HK_OFFERS)
      hk_warp_offers_early(sensors, desk);
    const uint32_t n = desk->n_offers;
    if (takes) {
      const uint32_t u = __ffs(takes) - 1, place = at + u * HK_WARP;
      float its = similarity[0];
#pragma unroll
      for (uint32_t other = 1; other < HK_AT_ONCE; other++)
        its = u == other ? similarity[other] : its;
      for (uint32_t q = 0; q < k; q++) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(v->similarity + q * v->room + place));
        asm volatile("prefetch.global.L2 [%0];" ::"l"(v->neighbour + q * v->room + place));
      }
      desk->offer[n + __popc(all & ((1u << lane) - 1))] = { its, (uint16_t)who, (uint16_t)place };
      takes &= takes - 1;
    }
    __syncwarp(); /* all have read the number */
    if (lane == 0)
      desk->n_offers = n + __popc(all);
    __syncwarp();
  }
}

/* Where a warp is in its passes: the next chunk to bring. */
struct hk_graph_cursor {
  uint32_t pass; /* number of the pass in the desk; HK_NO_PASS: all are done */
  uint32_t at;   /* place at which the chunk begins, */
  int32_t i;     /* and the number of its node from the oldest one; less than 0 before that */
};
#define HK_NO_PASS 2u

/* Compares the newest node with those of a chunk: products, similarities, notes of nodes whose list it enters; best: its own
 * list. First all numbers are read, so that they are waited for together. */
static __device__ __forceinline__ void hk_warp_compare(const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk,
                                                       const struct hk_graph_chunk *chunk, struct hk_graph_cursor c,
                                                       struct hk_graph_best *best)
{
  const struct hk_graph_pass *const p = &desk->pass[c.pass];
  const uint32_t lane = hk_lane(), n = p->n, i = c.i + lane, at = c.at + lane;
  const uint32_t end = min(n - c.i, p->room - c.at), before = c.i < 0 ? -c.i : 0; /* of the chunk's nodes those are compared */
  const struct hk_graph_node node = p->node;
  float *const products = hk_global(p->product) + (int32_t)i;
  float product[HK_AT_ONCE], off[HK_AT_ONCE], half[HK_AT_ONCE], inverse[HK_AT_ONCE], log[HK_AT_ONCE], worst[HK_AT_ONCE];
  float *const similarity = inverse, top = -INFINITY;
#pragma unroll
  for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
    const uint32_t q = u * HK_WARP + lane;
    product[u] = chunk->product[p->aside + q];
    off[u] = chunk->off[q];
    half[u] = chunk->half[q];
    inverse[u] = chunk->inverse[q];
    log[u] = chunk->log[q];
    worst[u] = chunk->worst[q];
  }
  uint32_t here = (1u << HK_AT_ONCE) - 1, takes = 0; /* bit u: node u is compared; takes the newest one */
  if (before > 0 || end < HK_CHUNK) {
    here = 0;
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      here |= (u * HK_WARP + lane >= before && u * HK_WARP + lane < end ? 1u : 0u) << u;
  }
#pragma unroll
  for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
    product[u] = product[u] + node.half * off[u] + node.off * half[u]; /* not contracted, as on the host */
    const float spreads = node.log - log[u];
    similarity[u] = product[u] * (node.inverse * inverse[u]) - (float)HK_GRAPH_SPREAD * spreads * spreads;
  }
  const float *const mean = p->mean;
  if (mean) {
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
      const float levels = here >> u & 1 ? node.level * (node.mean - hk_global(mean)[at + u * HK_WARP]) : 0;
      similarity[u] -= levels * levels;
    }
  }
  const uint32_t lag = n + p->nearest - 1 - i, local = p->local;
  if (lag < local + (HK_AT_ONCE - 1) * HK_WARP) {
#pragma unroll
    for (uint32_t u = 0; u < HK_AT_ONCE; u++)
      if (lag - u * HK_WARP < local)
        similarity[u] = hk_graph_locally(similarity[u], p->locality);
  }
#pragma unroll
  for (uint32_t u = 0; u < HK_AT_ONCE; u++) {
    if (here >> u & 1)
      products[u * HK_WARP] = product[u];
    else
      similarity[u] = -INFINITY;
    takes |= (similarity[u] > worst[u] ? 1u : 0u) << u; /* never -infinity, beside the nodes */
    top = fmaxf(top, similarity[u]);
  }
  if (__any_sync(HK_ALL, takes))
    hk_warp_note(sensors, desk, p->who, similarity, at, takes);
  hk_best_offer(best, p->k, similarity, top, lag);
}

/* Prepares a pass for sensor number `who`, which has nodes to compare. Returns its first chunk. */
static __device__ __forceinline__ struct hk_graph_cursor hk_warp_prepare(const struct hk_graph_sensor *sensors, uint32_t who,
                                                                         struct hk_graph_desk *desk, uint32_t pass)
{
  const struct hk_graph_view *v = &sensors[who].view;
  const uint32_t live = v->graph->live, nearest = hk_graph_exclusion(v), k = v->detector->neighbours;
  const uint32_t oldest = hk_graph_place(v, live - 1);
  if (hk_lane() == 0)
    desk->pass[pass] = { v->product + (v->most - live),
                         v->half,
                         v->similarity + (k - 1) * v->room,
                         v->room,
                         live - nearest,
                         (v->most - live - oldest) & 3u,
                         who,
                         k,
                         sensors[who].node,
                         hk_graph_local(v),
                         nearest,
                         v->detector->locality,
                         v->mean };
  __syncwarp();
  return { pass, oldest & ~3u, -(int32_t)(oldest & 3u) };
}

/* Begins to copy 16 bytes of a column, and tells memory of those that the next chunk has there. */
static __device__ __forceinline__ void hk_column_fetch(float *to, const float *from, bool more)
{
  __pipeline_memcpy_async(to, from, 16);
  if (more)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from + HK_CHUNK));
}

/* Begins to copy a chunk. Memory is told of the next one of the sensor, if that is a whole one before the end of the columns. */
static __device__ __forceinline__ void hk_chunk_fetch(const struct hk_graph_desk *desk, struct hk_graph_cursor c,
                                                      struct hk_graph_chunk *to)
{
  const struct hk_graph_pass *const p = &desk->pass[c.pass];
  const uint32_t room = p->room, aside = p->aside, quad = 4 * hk_lane(), rest = min(room - c.at, p->n - c.i);
  const uint32_t left = min(rest, HK_CHUNK);
  const bool more = rest >= 2 * HK_CHUNK;
  const float *const product = p->product + (c.i - (int32_t)aside) + (int32_t)quad, *const half = p->half + c.at + quad,
                     *const worst = p->worst + c.at + quad;
  if (quad < min(left + aside, HK_CHUNK))
    hk_column_fetch(to->product + quad, product, more);
  if (quad == 0 && HK_CHUNK < left + aside)
    __pipeline_memcpy_async(to->product + HK_CHUNK, product + HK_CHUNK, 16);
  if (quad < left) {
    hk_column_fetch(to->half + quad, half, more);
    hk_column_fetch(to->off + quad, half + room, more);
    hk_column_fetch(to->inverse + quad, half + 2 * room, more);
    hk_column_fetch(to->log + quad, half + 3 * room, more);
    hk_column_fetch(to->worst + quad, worst, more);
  }
}

/* The chunk after another: of the same sensor, whose nodes go on at place 0 behind the end of the columns, or of the next one of
 * *rest. */
static __device__ __forceinline__ struct hk_graph_cursor
hk_cursor_next(struct hk_graph_cursor c, const struct hk_graph_sensor *sensors, struct hk_graph_desk *desk, uint32_t *rest)
{
  const uint32_t room = desk->pass[c.pass].room;
  c.i += HK_CHUNK;
  c.at += HK_CHUNK;
  if (c.at >= room) {
    c.i -= (int32_t)(c.at - room);
    c.at = 0;
  }
  if (c.i < (int32_t)desk->pass[c.pass].n)
    return c;
  if (*rest == 0)
    return { HK_NO_PASS, 0, 0 };
  const uint32_t who = __ffs(*rest) - 1;
  *rest &= *rest - 1;
  return hk_warp_prepare(sensors, who, desk, c.pass ^ 1);
}

#endif
