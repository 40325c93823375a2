/* Words of model files (model_plan.h), and how large these may be. */
#ifndef HK_MODEL_WORD_H
#define HK_MODEL_WORD_H

#include <stddef.h>
#include <stdint.h>

#define HK_MODEL_BYTES ((size_t)1 << 24) /* maximum size of a file */
#define HK_MODEL_LINES_MAX 65536
#define HK_MODEL_PIPES_MAX 65536
#define HK_MODEL_LINE_PIPES_MAX 4096 /* of a line */
#define HK_MODEL_CELLS_MAX 100000    /* of a line */
#define HK_MODEL_NETWORK_CELLS_MAX 1000000
#define HK_MODEL_ALL_CELLS_MAX 16777216 /* of all lines */
#define HK_MODEL_SENSORS_MAX 65536
#define HK_MODEL_NONE UINT32_MAX

/* A word of the file, not terminated by 0. */
struct hk_model_word {
  const char *text;
  uint32_t length;
};

#endif
