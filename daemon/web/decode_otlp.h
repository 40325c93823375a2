/* Decodes metrics of OTLP/HTTP, in protobuf, into lines with times in ns (otlp_points.h). */
#ifndef HK_DECODE_OTLP_H
#define HK_DECODE_OTLP_H

#include "daemon/intake/sample_lines.h"

/* Appends the lines of an ExportMetricsServiceRequest. Returns 0; -EBADMSG: not such a message; -E2BIG: too many points in one
 * message; -ENOMEM. Thread: any. */
int hk_decode_otlp(const void *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults);
/* Appends the answer with the number of rejected data points, and the reason. */
void hk_otlp_partial(int64_t rejected, const char *why, struct hk_buffer *out);

#endif
