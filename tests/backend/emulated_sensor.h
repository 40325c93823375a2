/* A sensor's record for an emulated warp, and numbers at random for its points. Include it behind emulated_warp.h. */
#ifndef HK_EMULATED_SENSOR_H
#define HK_EMULATED_SENSOR_H

#include "gpu/backend/device_types.h"

struct emulated_sensor {
  hk_detector detector;
  std::vector<float4> memory; /* aligned as a record is on a device */
  hk_cuda_record *record;

  explicit emulated_sensor(const hk_detector &d) : detector(d), memory(hk_cuda_record_bytes(&d) / sizeof(float4) + 1)
  {
    record = (hk_cuda_record *)memory.data();
  }
};

/* The next number, less than `below`, of a sequence. */
static inline uint32_t emulated_random(uint64_t *state, uint32_t below)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33) % below;
}

#endif
