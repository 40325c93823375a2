/* As decode_otlp.h, in JSON. */
#ifndef HK_DECODE_OTLP_JSON_H
#define HK_DECODE_OTLP_JSON_H

#include "daemon/intake/sample_lines.h"

#define HK_OTLP_JSON (4u << 20) /* most bytes of a body: parsing needs some forty times as much memory */

int hk_decode_otlp_json(const char *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults);
void hk_otlp_partial_json(int64_t rejected, const char *why, struct hk_buffer *out);

#endif
