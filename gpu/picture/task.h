/* What is computed of pictures in device memory, and where to. */
#ifndef HK_PICTURE_TASK_H
#define HK_PICTURE_TASK_H

#include "cpu/picture/picture.h"

/* Numbers of a column of a tile that are kept between the two passes: as struct hk_picture_columns, in its order. */
#define HK_PICTURES_COLUMNS 5u

/* Pictures of one size and kind, all in device memory. */
struct hk_pictures_task {
  struct hk_picture_rule rule;
  uint32_t height, width, kind; /* enum hk_picture_pixel */
  uint32_t pictures;
  size_t apart;       /* bytes from a picture to the next, a multiple of 16 */
  const char *pixels; /* at a multiple of 16 */
  /* HK_PICTURES_COLUMNS rows of hk_pictures_pitch(width) for each row of tiles of each picture */
  float *columns;
  struct hk_picture_tile *tiles; /* by picture, row, column */
};

HK_INLINE uint32_t hk_pictures_pitch(uint32_t width)
{
  return (width + 3) / 4 * 4;
}

#endif
