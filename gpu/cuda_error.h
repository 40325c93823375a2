/* What a failed call of the CUDA runtime is to a caller. */
#ifndef HK_CUDA_ERROR_H
#define HK_CUDA_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* What a cudaError_t other than cudaSuccess is: -ENOMEM (too little memory on the device, or pinned), -ENODEV (no usable GPU of
 * that number, or no driver for it) or -EIO. */
int hk_cuda_code(int failed);

/* CUDA's words for it; for a missing driver ours, because CUDA's own are of versions even where there is no driver at all. */
const char *hk_cuda_words(int failed);

/* Describes a failure in `error` (size bytes), and clears it where the runtime keeps it. failed: a cudaError_t other than
 * cudaSuccess. what: what needs `bytes` bytes of the device's memory, with its verb ("a field needs"). Returns
 * hk_cuda_code(failed). */
int hk_cuda_error(char *error, size_t size, int failed, const char *what, uint64_t bytes);

#endif
