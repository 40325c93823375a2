/* The last picture of each camera, made small, for people to look at. Nothing of it is kept over a restart.
 *
 * Threads: loops show pictures, the web's thread reads them. */
#ifndef HK_PICTURE_BOARD_H
#define HK_PICTURE_BOARD_H

#include "daemon/config/picture_rule.h"
#include "proto/wire/picture.h"

#include <stdbool.h>

#define HK_BOARD_CAMERAS 64u /* of more, those that have sent nothing for longest are not shown */
#define HK_BOARD_SIDE 256u   /* cells on a side, at most */

struct hk_picture_board;

/* A camera and its last picture. */
struct hk_board_picture {
  char name[HK_NAME_MAX + 1];
  int64_t time;
  uint64_t shown;                              /* number of the picture among all that were shown */
  uint32_t height, width;                      /* of the picture, pixels */
  uint32_t tile;                               /* side of a tile, pixels */
  uint32_t statistics;                         /* as in struct hk_pictures_rule */
  uint32_t rows, columns;                      /* cells, each of square blocks of pixels: 1..HK_BOARD_SIDE */
  double low, high;                            /* values of cells 1 and 255 */
  uint8_t cell[HK_BOARD_SIDE * HK_BOARD_SIDE]; /* by row: the greatest pixel of a block; 0: all are missing */
};

/* Returns NULL if there is no memory. */
struct hk_picture_board *hk_picture_board_new(void);
void hk_picture_board_free(struct hk_picture_board *board); /* NULL is allowed */

/* Whether a camera's picture is to be shown, of which the last one was at `last`, ns of the monotonic clock: one a second is. */
bool hk_picture_board_due(const struct hk_picture_board *board, int64_t *last);
/* Shows a picture. Of pictures with over 8 x 8 pixels in a cell, 8 x 8 of them are looked at. Without memory it is not shown. */
void hk_picture_board_show(struct hk_picture_board *board, const struct hk_pictures_rule *rule,
                           const struct hk_picture_message *m, int64_t time);

/* Copies the pictures' heads, all but `cell`, by name. Returns their number. */
uint32_t hk_picture_board_list(struct hk_picture_board *board, struct hk_board_picture **heads);
/* Copies a camera's picture, which the caller frees. NULL: there is none, or no memory. */
struct hk_board_picture *hk_picture_board_copy(struct hk_picture_board *board, const char *name);

#endif
