/* Converts between the record of a sensor, copied to the host, and its portable state (cpu/rules/state.h). */
#ifndef HK_RECORD_STATE_H
#define HK_RECORD_STATE_H

#include "gpu/backend/device_types.h"

#include <stddef.h>

/* Writes a record's state if it fits. Returns its bytes. */
size_t hk_cuda_record_export(struct hk_cuda_record *record, const struct hk_detector *d, void *state, size_t size);
/* Makes the record of a sensor, all zero except its slot, from a state. Returns 0, or a negative errno as hk_state_read. */
int hk_cuda_record_import(struct hk_cuda_record *record, const struct hk_detector *d, const void *state, size_t size);

#endif
