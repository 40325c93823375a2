/* Pixels of every kind for tests of pictures on a GPU, and the host's results for them. */
#ifndef HK_PICTURE_CASES_H
#define HK_PICTURE_CASES_H

#include "cpu/picture/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers by chance begin anew; and the next one, any 32 bits. */
void picture_begin(uint64_t seed);
uint32_t picture_noise(void);
/* Writes pixel i of row r of scene 0, a natural scene; 1, noise; or 2, hard cases: the least and the greatest number, missing
 * ones, zeros of both signs, subnormal numbers. kind: enum hk_picture_pixel. */
void picture_put_pixel(uint8_t *to, uint32_t kind, uint32_t scene, uint32_t r, uint32_t i);
/* The tiles of a picture, by the host. */
void picture_by_host(const struct hk_picture_rule *rule, uint32_t height, uint32_t width, uint32_t kind, const void *pixels,
                     struct hk_picture_tile *out);
/* The test fails, with `what`, unless n tiles have the same bits, or both a NaN. */
void picture_assert_same(const struct hk_picture_tile *a, const struct hk_picture_tile *b, uint32_t n, const char *what);

#ifdef __cplusplus
}
#endif
#endif
