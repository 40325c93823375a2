/* A tile of a picture. */
#ifndef HK_PICTURE_TILE_H
#define HK_PICTURE_TILE_H

#include <stdint.h>

/* What becomes of a tile; h: its pixels after the filters (picture.h). */
struct hk_picture_tile {
  uint32_t n;  /* pixels of h that are not missing; all else is 0 if there is none */
  uint32_t of; /* pixels of the tile */
  double most, mean, spread;
};

#endif
