/* What a failed call of the CUDA runtime is to a caller. */
#ifndef HK_CUDA_ERROR_H
#define HK_CUDA_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* Describes a failure in `error` (size bytes), and clears it where the runtime keeps it. failed: a cudaError_t other than
 * cudaSuccess. what: what needs `bytes` bytes of the device's memory, with its verb ("a field needs"). Returns -ENOMEM (they are
 * not free there), -ENODEV (no usable GPU of that number, or no driver) or -EIO. */
int hk_cuda_error(char *error, size_t size, int failed, const char *what, uint64_t bytes);

#endif
