/* The keys of a field: see field.h. */
#ifndef HK_FIELD_RULE_H
#define HK_FIELD_RULE_H

#include "cpu/field/residual.h"
#include "cpu/model/model.h"

#define HK_FIELD_WAIT_MAX 64
#define HK_FIELD_INTERVAL_MIN 1000 /* ns */
#define HK_FIELD_MEMBERS_MAX 1048576
#define HK_FIELD_AUTO_MAX 4096 /* members that find their neighbours themselves */

#define HK_FIELD_FILE_MAX 512 /* bytes of a path, with the 0 */

enum hk_field_operator {
  HK_FIELD_RESIDUAL, /* less what the neighbours let expect (residual.h) */
  HK_FIELD_MODEL,    /* less what the equations of a line of pipes say (cpu/model/model.h) */
};

enum hk_field_neighbours {
  HK_FIELD_AUTO,
  HK_FIELD_GRAPH,   /* of a file of edges */
  HK_FIELD_NEAREST, /* of a file of places */
};

struct hk_field_rule {
  uint32_t kind;                /* enum hk_field_operator */
  uint32_t neighbours;          /* of a residual, as q, refit, blame and forget: enum hk_field_neighbours */
  uint32_t q;                   /* of a member, at most; 2..HK_RESIDUAL_NEIGHBOURS_MAX */
  uint32_t refit;               /* rows; 1..4096 */
  uint32_t blame;               /* rows that a step is seen over; 4..4096 */
  uint32_t wait;                /* rows; 1..HK_FIELD_WAIT_MAX */
  uint32_t members;             /* at most; 3..HK_FIELD_MEMBERS_MAX */
  int64_t interval;             /* ns of a row; at least HK_FIELD_INTERVAL_MIN */
  double forget;                /* 0.9..0.99999 */
  double clip;                  /* 1..1000 */
  double adapt;                 /* of a model: 0..0.1 */
  uint32_t hold;                /* of a model: rows; up to HK_MODEL_HOLD_MAX */
  char file[HK_FIELD_FILE_MAX]; /* of edges, of places, or a model's; "": none */
  uint32_t mark;                /* of what the file says; 0: it has none, or was not read */
  bool placed;                  /* it was said to be of places */
  bool modelled;                /* it was said to be a model's */
  uint32_t given;               /* bits: a key was given that only this operator has; of use to hk_field_check alone */
};

/* The rule with every key at its default. */
struct hk_field_rule hk_field_default(void);
/* Sets one key, of operator neighbours positions q refit blame forget file adapt hold wait members interval clip;
 * hankeld.conf(5) documents them.
 * hk_field_check: how they fit together. 0, or -EINVAL with a message. */
int hk_field_set(struct hk_field_rule *rule, const char *key, const char *value, char *error, size_t size);
int hk_field_check(const struct hk_field_rule *rule, char *error, size_t size);
/* Parses "key=value,key=value"; "" is the default. As hk_field_check. */
int hk_field_parse(const char *text, struct hk_field_rule *out, char *error, size_t size);
/* What the residual is told of it. */
struct hk_residual_rule hk_field_residual_rule(const struct hk_field_rule *rule);
/* What the model is. */
struct hk_model_rule hk_field_model_rule(const struct hk_field_rule *rule);

#endif
