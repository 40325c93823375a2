/* The section [pictures NAME] of a configuration: which cameras' pictures are taken, and what is made of them. Thread: any. */
#ifndef HK_PICTURE_RULE_H
#define HK_PICTURE_RULE_H

#include "cpu/picture/picture.h"
#include "daemon/base/limits.h"
#include "daemon/config/section_keys.h"

#define HK_CONFIG_PICTURES_MAX 16

/* What is said of a tile, each a series CAMERA/ROW,COLUMN/WORD; bits by index of hk_picture_statistics. */
enum { HK_PICTURE_MOST, HK_PICTURE_MEAN, HK_PICTURE_SPREAD, HK_PICTURE_STATISTICS };
extern const char *const hk_picture_statistics[];

struct hk_pictures_rule {
  char name[HK_CONFIG_NAME_MAX];
  char match[HK_SECTION_GLOB]; /* of cameras' names */
  struct hk_picture_rule of;
  uint32_t statistics; /* 1 << HK_PICTURE_MOST, ... */
};
/* The first that matches a camera is its rule. */
struct hk_pictures_rules {
  struct hk_pictures_rule *rule;
  uint32_t n;
};

/* All keys at their defaults. */
struct hk_pictures_rule hk_pictures_default(void);
/* Sets a key. Returns 0, or -EINVAL with a message. */
int hk_pictures_key(struct hk_pictures_rule *rule, const char *name, const char *value, char *error, size_t size);

#endif
