/* Pictures of cameras: filtered and summed up by tiles (cpu/picture/picture.h), each of which is a sensor,
 * CAMERA/ROW,COLUMN/max, say, with rows and columns of tiles counted from 0. From there on they are points as any others.
 *
 * A picture counts as one point of its feed. Its points are together in one chunk for each shard, so a journal has a shard's part
 * of a picture, and the feed's position behind it, or neither.
 *
 * Thread: the loop's. */
#ifndef HK_PICTURES_H
#define HK_PICTURES_H

#include "cpu/picture/device.h"
#include "daemon/config/picture_rule.h"
#include "daemon/intake/intake.h"
#include "daemon/intake/picture_board.h"
#include "proto/wire/picture.h"

#define HK_PICTURE_POINTS 4096u /* of one picture, at most */
#define HK_CAMERAS_MAX 64u      /* of one connection */

#define HK_PICTURE_SPACES 8u /* sizes of pictures that a loop has work space for at a time */

/* Work space for pictures of one rule and size: on the host and, if that computes them, on the device. */
struct hk_picture_space {
  struct hk_picture_rule rule;
  uint32_t height, width;
  struct hk_picture *host; /* NULL: none yet */
  void *there;             /* likewise */
};

/* Work space of a loop; zero-initialised. */
struct hk_picture_work {
  struct hk_picture_place place; /* where they are computed; the caller sets it */
  bool there;                    /* the device has been told of */
  struct hk_picture_space space[HK_PICTURE_SPACES];
  uint32_t next;                /* the space that is given up next */
  struct hk_picture_tile *tile; /* HK_PICTURE_POINTS; NULL: none yet, and so are these: */
  uint32_t *slot;
  int64_t *time;
  double *value;
};
void hk_picture_work_free(struct hk_picture_work *work);

/* The cameras of a connection; zero-initialised. */
struct hk_cameras {
  struct hk_camera *camera; /* n of them */
  uint32_t n;
};
void hk_cameras_free(struct hk_cameras *cameras);

/* From whom pictures come. */
struct hk_picture_source {
  struct hk_source *source;
  struct hk_feeding *feeding; /* NULL: no feed */
  uint64_t owner;             /* of new sensors: sensors/owners.h */
  struct hk_cameras *cameras;
  struct hk_picture_board *board; /* to show it on; NULL: none */
};

/* Takes a picture; there must be room as for a frame of points (hk_intake_open). wrong: why it cannot be one; NULL: it can. A
 * picture that is dropped advances its feed, too. Returns 0; HANKEL_BAD_PICTURE with a message: it was dropped, or some of its
 * tiles have no sensor; HANKEL_LIMIT: another connection has the feed now; or HANKEL_INTERNAL: out of memory. */
int hk_pictures_take(struct hk_intake *intake, struct hk_picture_work *work, const struct hk_pictures_rules *rules,
                     const struct hk_picture_source *from, const struct hk_picture_message *m, const char *wrong, char *why,
                     size_t size);

#endif
