/* Fuzz target: OTLP's metrics. The first byte of the input selects the format of the rest: j for JSON, else protobuf. Any message
 * becomes lines, one for each data point. */
#include "daemon/web/decode_otlp.h"
#include "daemon/web/decode_otlp_json.h"
#include "tests/fuzz/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_buffer lines = { 0 };
  struct hk_sample_faults faults = { 0 };
  if (size == 0)
    return 0;
  char *copy = malloc(size); /* its own piece of memory, so that ASan sees one byte too many */
  memcpy(copy, data + 1, size - 1);
  const int status =
      data[0] == 'j' ? hk_decode_otlp_json(copy, size - 1, &lines, &faults) : hk_decode_otlp(copy, size - 1, &lines, &faults);
  if (status == 0)
    fuzz_lines(&lines, &faults);
  free(copy);
  hk_buffer_free(&lines);
  return 0;
}
