/* Pictures of thermal cameras, pressure mats and the like, filtered and summed up by tiles:
 *
 *   y = median of 3 x 3 or 5 x 5 of x        bad pixels and flicker go
 *   h = y - mean of 15 x 15 of y             what the scene has in common, and the camera's own jumps, go
 *       or 4 y - its four neighbours         the Laplacian, for edges and single points
 *   of each tile of B x B pixels: greatest, mean and spread of h
 *
 * Beyond the edge of the picture its nearest pixel repeats. A pixel that is not finite is missing: medians and means are of those
 * that are there (the lower middle one of an even number), and h is missing where y, or in the Laplacian a neighbour, is. Tiles
 * begin at the first row and column; the last ones are smaller if the picture's size is no multiple of B.
 *
 * All is in the unit of the pixels given here, in float: sums of 225 integers up to 65,535 are exact. Means and spreads of a tile
 * are summed up by column, as differences from the column's first pixel, and in double over the columns. The same pixels give the
 * same bits with every instruction set. Costs 30 to 150 operations a pixel. Thread: the owner's. */
#ifndef HK_PICTURE_H
#define HK_PICTURE_H

#include "cpu/detector.h"
#include "cpu/picture/tile.h"

#include <stddef.h>
#include <stdint.h>

#define HK_PICTURE_TILE_MAX 1024u
#define HK_PICTURE_TILE_LEAST 4u

/* Pixels as they come: unsigned integers, or floats by IEEE 754. */
enum hk_picture_pixel { HK_PICTURE_U8, HK_PICTURE_U16, HK_PICTURE_F16, HK_PICTURE_F32 };
enum hk_picture_subtract { HK_PICTURE_BOX, HK_PICTURE_LAPLACIAN, HK_PICTURE_NOTHING };

struct hk_picture_rule {
  uint32_t median;   /* 0: none; 3 or 5 */
  uint32_t subtract; /* enum hk_picture_subtract */
  uint32_t tile;     /* B */
};

/* Work space for pictures of one size. */
struct hk_picture;

/* height and width: 1..8192. Returns 0 and *out, or -ENOMEM. */
int hk_picture_new(struct hk_picture **out, const struct hk_picture_rule *rule, uint32_t height, uint32_t width);
void hk_picture_free(struct hk_picture *picture); /* NULL is allowed */
/* Where the caller writes the `width` pixels of row r; after hk_picture_tiles of the last picture they are to be written anew. */
float *hk_picture_row(struct hk_picture *picture, uint32_t r);
/* Number of tiles over so many pixels. */
HK_INLINE uint32_t hk_picture_tiles_over(uint32_t pixels, uint32_t tile)
{
  return (pixels + tile - 1) / tile;
}
/* Computes all tiles, row by row: hk_picture_tiles_over(height, tile) * hk_picture_tiles_over(width, tile). */
void hk_picture_tiles(struct hk_picture *picture, struct hk_picture_tile *out);

#endif
