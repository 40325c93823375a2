/* [pictures NAME]: see picture_rule.h. */
#include "daemon/config/picture_rule.h"

const char *const hk_picture_statistics[] = { "max", "mean", "spread", NULL };
static const char *const medians[] = { "off", "", "", "3", "", "5", NULL }; /* by size */
static const char *const subtracts[] = { "box", "laplacian", "off", NULL };

static const struct hk_section_key picture_keys[] = {
  { "match", HK_TAKES(GLOB, struct hk_pictures_rule, match) },
  { "tile", HK_TAKES(WHOLE, struct hk_pictures_rule, of.tile), .wrong = "not a whole number of pixels from 4 to 1024",
    .min = HK_PICTURE_TILE_LEAST, .max = HK_PICTURE_TILE_MAX },
  { "median", HK_TAKES(WORD, struct hk_pictures_rule, of.median), .wrong = "not one of off, 3, 5", .words = medians },
  { "subtract", HK_TAKES(WORD, struct hk_pictures_rule, of.subtract), .wrong = "not one of box, laplacian, off",
    .words = subtracts },
  { "statistics", HK_TAKES(WORDS, struct hk_pictures_rule, statistics), .wrong = "not some of max, mean, spread",
    .words = hk_picture_statistics },
};

struct hk_pictures_rule hk_pictures_default(void)
{
  return (struct hk_pictures_rule){ .of = { .median = 3, .subtract = HK_PICTURE_BOX, .tile = 32 },
                                    .statistics = 1u << HK_PICTURE_MOST };
}

int hk_pictures_key(struct hk_pictures_rule *rule, const char *name, const char *value, char *error, size_t size)
{
  return hk_section_key_set("pictures", picture_keys, sizeof picture_keys / sizeof *picture_keys, rule, name, value, error, size);
}
