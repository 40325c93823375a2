/* Pictures on a device beside the host, which gives the same bits as hk_picture_tiles, so it does not matter which computed one.
 */
#ifndef HK_PICTURE_DEVICE_H
#define HK_PICTURE_DEVICE_H

#include "cpu/picture/picture.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_PICTURE_DEVICE_LEAST (128u * 128u) /* pixels; of fewer the host takes about as long as the copies */

/* Functions of a kind of device. All except `close` and `pixels` may block for seconds, but not forever. */
struct hk_picture_device {
  /* Makes work space for pictures of one size on device `number`. Returns 0 and *out, or a negative errno with a message. */
  int (*open)(void **out, const struct hk_picture_rule *rule, uint32_t height, uint32_t width, uint32_t number, char *error,
              size_t size);
  void (*close)(void *space);
  /* Where the caller writes the pixels of a picture, of any kind, row by row without gaps. */
  void *(*pixels)(void *space);
  /* Computes all tiles of pixels of a kind (enum hk_picture_pixel), as hk_picture_tiles. Returns 0 and *out, valid until the next
   * call, or a negative errno with a message; then the space can only be closed. */
  int (*tiles)(void *space, uint32_t kind, const struct hk_picture_tile **out, char *error, size_t size);
};

/* Where pictures are computed. All zero: on the host. */
struct hk_picture_place {
  const struct hk_picture_device *device; /* NULL: the host */
  uint32_t number;                        /* of the device */
  uint32_t least;                         /* the host computes pictures of fewer pixels */
  /* Reports that the device computes from now on or, if why is not NULL, that the host does. NULL: no report. */
  void (*told)(void *arg, const char *why);
  void *arg;
};

#ifdef __cplusplus
}
#endif
#endif
