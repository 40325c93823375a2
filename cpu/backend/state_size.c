#include "cpu/backend/state_size.h"

#include "cpu/graph/state.h"
#include "cpu/limit/state.h"
#include "cpu/novelty/state.h"
#include "cpu/shift/state.h"

size_t hk_state_most(const struct hk_detector *d)
{
  const uint32_t span = hk_detector_span(d), narrowest = hk_graph_narrowest(d);
  if (d->algorithm == HK_ALGORITHM_GRAPH)
    return hk_state_head_size(span) + hk_graph_state_size(d, narrowest, d->resident - narrowest) + HK_STATE_CHECKSUM;
  if (d->algorithm == HK_ALGORITHM_SHIFT)
    return hk_state_head_size(span) + hk_shift_state_size(hk_shift_smooth(d), HK_SHIFT_HISTORY) + HK_STATE_CHECKSUM;
  if (d->algorithm == HK_ALGORITHM_NOVELTY)
    return hk_state_head_size(span) + hk_novelty_state_most(d) + HK_STATE_CHECKSUM;
  if (d->algorithm == HK_ALGORITHM_LIMIT)
    return hk_state_head_size(span) + hk_limit_state_size(HK_LIMIT_KEPT) + HK_STATE_CHECKSUM;
  return hk_state_size(d, span);
}
