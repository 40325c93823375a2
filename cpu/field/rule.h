/* The keys of a field: see field.h. */
#ifndef HK_FIELD_RULE_H
#define HK_FIELD_RULE_H

#include "cpu/field/focus_keys.h"
#include "cpu/model/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_filter_rule;
struct hk_focus_rule;
struct hk_residual_rule;

#define HK_FIELD_WAIT_MAX 64
#define HK_FIELD_INTERVAL_MIN 1000 /* ns */
#define HK_FIELD_MEMBERS_MAX 1048576
#define HK_FIELD_AUTO_MAX 4096 /* maximum number of members with HK_FIELD_AUTO */

#define HK_FIELD_FILE_MAX 512 /* bytes of a path, including the 0 */

enum hk_field_operator {
  HK_FIELD_RESIDUAL, /* value less the value expected from the neighbours (residual.h) */
  HK_FIELD_MODEL,    /* value less the value by the equations of a line of pipes (cpu/model/model.h) */
  HK_FIELD_FOCUS,    /* strength of a change that travels along a line (focus.h) */
  HK_FIELD_DESPIKE,  /* value without spikes (filter.h) */
  HK_FIELD_MEDIAN,   /* running median (filter.h) */
  HK_FIELD_HOELDER,  /* Hoelder exponent (hoelder.h) */
  HK_FIELD_ARMA,     /* forecast of that for the next row (arma.h) */
  HK_FIELD_KINDS
};
#define HK_FIELD_OPERATORS "residual, model, focus, despike, median, hoelder, arma" /* their names */

enum hk_field_neighbours {
  HK_FIELD_AUTO,
  HK_FIELD_GRAPH,   /* from a file of edges */
  HK_FIELD_NEAREST, /* from a file of places */
  HK_FIELD_LINE,    /* none: a file of positions on a line; focus only */
};

struct hk_field_rule {
  uint32_t kind;              /* enum hk_field_operator */
  uint32_t neighbours;        /* residual only, as q and refit; focus has LINE: enum hk_field_neighbours */
  uint32_t q;                 /* maximum neighbours of a member; 2..HK_RESIDUAL_NEIGHBOURS_MAX */
  uint32_t refit;             /* rows; 1..4096 */
  uint32_t blame;             /* rows over which a step is visible; 4..4096 */
  uint32_t wait;              /* rows; 1..HK_FIELD_WAIT_MAX */
  uint32_t members;           /* maximum number; 3..HK_FIELD_MEMBERS_MAX */
  int64_t interval;           /* ns from row to row; at least HK_FIELD_INTERVAL_MIN */
  double forget;              /* 0.9..0.99999 */
  double clip;                /* 1..1000 */
  double adapt;               /* model only: 0..0.1 */
  uint32_t hold;              /* model only: rows; up to HK_MODEL_HOLD_MAX */
  struct hk_focus_keys focus; /* focus only */
  uint32_t samples;           /* despike and median only, as spike: 0, the default of the operator; or of filter.h */
  double spike;
  char file[HK_FIELD_FILE_MAX]; /* path of the file of edges, of places or positions, or of the model; "": none */
  uint32_t mark;                /* hash of the file's contents; 0: no file, or not read yet */
  bool placed;                  /* the file was given as one of places or positions */
  bool modelled;                /* the file was given as one of a model */
  uint32_t given;               /* bits by operator: a key that this operator does not have was given; for hk_field_check */
};

/* Returns the rule with all keys at their defaults. */
struct hk_field_rule hk_field_default(void);
/* hk_field_set: sets one of the keys operator neighbours positions q refit blame forget file adapt hold speed flow reach
 * travel block places threshold samples spike wait members interval clip; hankeld.conf(5) documents them. hk_field_check: checks
 * that the keys are consistent. Both return 0, or -EINVAL with a message. */
int hk_field_set(struct hk_field_rule *rule, const char *key, const char *value, char *error, size_t size);
int hk_field_check(const struct hk_field_rule *rule, char *error, size_t size);
/* Parses "key=value,key=value"; "" is the default. Returns as hk_field_check. */
int hk_field_parse(const char *text, struct hk_field_rule *out, char *error, size_t size);
/* The part of a rule for the residual. */
struct hk_residual_rule hk_field_residual_rule(const struct hk_field_rule *rule);
/* The parts of a rule for the model, for the focus, and for a filter; and whether its operator is a filter. */
struct hk_model_rule hk_field_model_rule(const struct hk_field_rule *rule);
struct hk_focus_rule hk_field_focus_rule(const struct hk_field_rule *rule);
struct hk_filter_rule hk_field_filter_rule(const struct hk_field_rule *rule);
static inline bool hk_field_filters(const struct hk_field_rule *rule)
{
  return rule->kind == HK_FIELD_DESPIKE || rule->kind == HK_FIELD_MEDIAN;
}
/* Whether it looks at each sensor alone: a filter, hoelder or arma. */
static inline bool hk_field_alone(const struct hk_field_rule *rule)
{
  return rule->kind >= HK_FIELD_DESPIKE;
}
/* Rows between two fits of arma: a day of them, within the bounds of arma.h. */
uint32_t hk_field_arma_rows(const struct hk_field_rule *rule);
/* Name of an operator, as in the configuration. */
const char *hk_field_operator_name(uint32_t kind);

#endif
