/* Fuzz target: remote write. Any message becomes lines, one for each sample, and a line that the
 * parser takes is one point. */
#include "daemon/web/decode_remote_write.h"
#include "tests/fuzz/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_buffer lines = { 0 };
  struct hk_sample_faults faults = { 0 };
  if (hk_decode_remote_write(data, size, &lines, &faults) == 0)
    fuzz_lines(&lines, &faults);
  hk_buffer_free(&lines);
  return 0;
}
