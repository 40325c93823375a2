/* Decodes samples of Prometheus remote write 1.0 into lines. */
#ifndef HK_DECODE_REMOTE_WRITE_H
#define HK_DECODE_REMOTE_WRITE_H

#include "daemon/intake/sample_lines.h"

/* Appends to `out` the lines of a decompressed WriteRequest, with times in ms; stale markers, NaN and infinities become empty
 * comments. Returns 0; -EBADMSG: not such a message; -E2BIG: too many samples in one message; -ENOMEM. Thread: any. */
int hk_decode_remote_write(const void *data, size_t size, struct hk_buffer *out, struct hk_sample_faults *faults);

#endif
