/* The CUDA kernel's nodes, links and splits of algorithm = graph, by a warp that is emulated: graphs and splits are those of
 * cpu/graph, bit for bit, for several sensors of a warp: with columns that have gone round, holes, values that repeat, series
 * that stand still or change their scale, and segments that begin anew. */

#include "tests/backend/emulated_warp.h"

#include "gpu/graph/graph.cuh"

#include "tests/backend/emulated_sensor.h"

#include <cstdarg>
#include <cstddef>
#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

namespace
{

constexpr uint32_t SENSORS = 4;

using sensor = emulated_sensor;

/* A wave with noise or of few values; it stands still, leaps, is scaled by 10^8, and has holes. */
struct signal {
  uint64_t state;
  int64_t time = 1000000000;
  uint32_t points = 0;
  double level = 0, scale = 1;

  uint32_t random(uint32_t below) { return emulated_random(&state, below); }

  double next()
  {
    const uint32_t what = random(200);
    time += INT64_C(1000000000) * (what == 0 ? 4 : 1);
    if (what == 1)
      level = (double)random(5);
    if (what == 2)
      scale = scale > 1 ? 1 : 1e8;
    const double wave = std::sin((double)points * 0.3) + level;
    const bool still = points / 60 % 5 == 4, coarse = points / 120 % 2 == 1;
    points++;
    return scale * (still ? level : coarse ? std::round(4 * wave) : wave + (double)random(1000) * 2e-4);
  }
};

/* In the order of the device: sums of products are not contracted. */
void link_plain(const struct hk_graph_view *v, const struct hk_graph_node *node)
{
  for (uint32_t lag = v->graph->live - 1; lag >= hk_graph_exclusion(v); lag--) {
    const uint32_t at = hk_graph_place(v, lag);
    float *const product = hk_graph_product_at(v, lag);
    *product = *product + node->half * v->off[at] + node->off * v->half[at];
    const float spreads = node->log - v->log[at], levels = v->mean ? node->level * (node->mean - v->mean[at]) : 0;
    float similarity = *product * (node->inverse * v->inverse[at]) - (float)HK_GRAPH_SPREAD * spreads * spreads;
    similarity -= levels * levels;
    if (lag < hk_graph_local(v))
      similarity = hk_graph_locally(similarity, v->detector->locality);
    hk_graph_offer(v, v->graph->head, (uint16_t)(v->graph->name - lag), similarity);
    hk_graph_offer(v, at, v->graph->name, similarity);
    hk_graph_middle(v, at);
  }
}

void add(const struct hk_graph_view *v, const struct hk_graph_samples *s)
{
  hk_graph_add(v, s, link_plain);
}

struct crowd {
  std::vector<sensor> plain, emulated;
  std::vector<signal> signals;
  hk_graph_sensor own[SENSORS];
  hk_graph_desk desk;
  std::vector<uint32_t> earlier, later;
  std::vector<float4> counts; /* and chunks */
  uint32_t searches = 0, scores = 0, cuts = 0, anew = 0;

  explicit crowd(const hk_detector &d)
  {
    for (uint32_t i = 0; i < SENSORS; i++) {
      plain.emplace_back(d);
      emulated.emplace_back(d);
      signals.push_back({ 11 + i });
    }
    for (uint32_t i = 0; i < SENSORS; i++)
      own[i].view = hk_cuda_graph(emulated[i].record, &emulated[i].detector);
    earlier.resize(hk_graph_room(&d) + HK_GRAPH_LANES);
    later.resize(earlier.size());
    counts.resize(std::max(earlier.size() + 16, HK_CHUNKS * sizeof(hk_graph_chunk)));
  }

  /* The emulated sensors' nodes of a point each. */
  void emulated_nodes(const int64_t *time, const double *value)
  {
    struct hk_graph_brought brought[SENSORS];
    uint32_t most = 0;
    for (uint32_t i = 0; i < SENSORS; i++) {
      struct hk_graph_view *const v = &own[i].view;
      hk_cuda_record *const record = emulated[i].record;
      float *const ring = hk_cuda_ring(record, v->detector);
      const struct hk_graph_brought b = brought[i] = hk_graph_accept(v, &record->window, ring, time[i], value[i], time[i], false);
      if (b.fresh)
        hk_graph_reset(v, b.again);
      for (uint32_t lag = 0; v->mean && b.shift != 0 && lag < v->graph->live; lag++)
        v->mean[hk_graph_place(v, lag)] -= b.shift;
      if (b.search)
        emulated_warp::run([&] { hk_warp_find_window(&own[i], ring, (uint32_t *)counts.data()); });
      searches += b.search;
      most = std::max(most, b.nodes);
    }
    for (uint32_t later_by = most; later_by-- > 0;) {
      uint32_t which = 0;
      for (uint32_t i = 0; i < SENSORS; i++)
        if (later_by < brought[i].nodes &&
            hk_graph_samples(&own[i].view, &emulated[i].record->window, hk_cuda_ring(emulated[i].record, own[i].view.detector),
                             later_by, &own[i].samples))
          which |= 1u << i;
      emulated_warp::run([&] { hk_warp_add(own, which, &desk, (hk_graph_chunk *)counts.data()); });
      for (uint32_t i = 0; i < SENSORS; i++)
        anew += which >> i & 1 && own[i].from + 1 < own[i].view.graph->live;
    }
    for (uint32_t i = 0; i < SENSORS; i++)
      (void)hk_graph_step(&own[i].view, &emulated[i].record->window, brought[i].step);
  }

  void point(const char *keys)
  {
    int64_t time[SENSORS];
    double value[SENSORS];
    hk_step step[SENSORS];
    struct hk_graph_view views[SENSORS];
    for (uint32_t i = 0; i < SENSORS; i++) {
      value[i] = signals[i].next();
      time[i] = signals[i].time;
      views[i] = hk_cuda_graph(plain[i].record, &plain[i].detector);
      step[i] = hk_graph_take(&views[i], &plain[i].record->window, hk_cuda_ring(plain[i].record, &plain[i].detector), time[i],
                              value[i], time[i], false, add);
    }
    emulated_nodes(time, value);
    for (uint32_t i = 0; i < SENSORS; i++) {
      if (step[i].score)
        split(keys, i, views[i]);
      const uint64_t at = hk_cuda_own_at(&plain[i].detector), bytes = hk_cuda_own_bytes(&plain[i].detector);
      const char *const wanted = (const char *)plain[i].record + at, *const got = (const char *)emulated[i].record + at;
      for (uint64_t k = 0; memcmp(wanted, got, bytes) != 0 && k < bytes; k++)
        if (wanted[k] != got[k])
          fail_msg("%s, sensor %u, point %u: byte %llu of %llu of the graph differs", keys, i, signals[i].points,
                   (unsigned long long)k, (unsigned long long)bytes);
    }
  }

  void split(const char *keys, uint32_t i, const struct hk_graph_view &v)
  {
    const struct hk_graph_counts c = { earlier.data(), later.data() };
    const struct hk_graph_split wanted = hk_graph_profile(&v, &c);
    emulated_warp::run([&] { hk_warp_profile(&own[i], (uint32_t *)counts.data()); });
    const struct hk_graph_split got = own[i].split;
    if (got.at != wanted.at || memcmp(&got.z, &wanted.z, sizeof got.z) != 0)
      fail_msg("%s, sensor %u, point %u: a split at %u of %.17g, not at %u of %.17g", keys, i, signals[i].points, got.at, got.z,
               wanted.at, wanted.z);
    scores++;
    if (signals[i].random(10) != 0)
      return;
    hk_graph_cut(&v, wanted.at);
    emulated_warp::run([&] { hk_warp_cut(&own[i]); });
    cuts++;
  }
};

void graphs_match(const char *keys, uint32_t points)
{
  hk_detector d;
  char error[200];
  assert_int_equal(hk_detector_parse(keys, &d, error, sizeof error), 0);
  crowd c(d);
  for (uint32_t p = 0; p < points; p++)
    c.point(keys);
  print_message("# %s: %u points of %u sensors, %u splits, %u cuts, %u times all products anew, %u windows found\n", keys, points,
                SENSORS, c.scores, c.cuts, c.anew, c.searches);
  assert_true(c.scores > 0 && c.cuts > 0 && c.anew > 0);
  assert_true(!d.search || c.searches > 0);
}

void plain_keys(void **)
{
  graphs_match("algorithm=graph,window=20,resident=300,interval=1s", 450);
}

void all_keys(void **)
{
  graphs_match("algorithm=graph,window=11,resident=205,neighbours=5,level=0.1,roughness=0.85,shortest=2,locality=0.2,interval=1s",
               350);
}

void window_from_data(void **)
{
  graphs_match("algorithm=graph,window=auto,resident=400,roughness=0.85,shortest=2,locality=0.2,interval=1s", 600);
}

} // namespace

int main()
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_keys),
    cmocka_unit_test(all_keys),
    cmocka_unit_test(window_from_data),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
