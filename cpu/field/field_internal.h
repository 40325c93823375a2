/* The insides of a field, for its own files: field.c makes rows and residuals of points, choose.c finds neighbours, state.c
 * writes and reads, rule.c has the keys. */
#ifndef HK_FIELD_INTERNAL_H
#define HK_FIELD_INTERNAL_H

#include "cpu/field/attached_model.h"
#include "cpu/field/field.h"
#include "cpu/field/offload.h"

#define HK_FIELD_NEVER INT64_MIN
#define HK_FIELD_VALUE_MAX 1e30

/* What a number is. LEFT: free once nobody has it as a neighbour any more, which is seen to before the next row or member. */
enum hk_field_status { HK_FIELD_FREE, HK_FIELD_MEMBER, HK_FIELD_LEFT };

struct hk_field_member {
  int64_t last;    /* row of the newest point; NEVER: none */
  int64_t from;    /* the row from which it takes part; INT64_MAX: there was no point */
  uint32_t status; /* enum hk_field_status */
  uint32_t seen;   /* rows in which it had a z, while neighbours are chosen by that */
  uint32_t node;   /* of the graph (binding.h); HK_RESIDUAL_NONE: none */
  uint32_t unused;
};

/* Points of a row that is not closed, by node. NaN: none. */
struct hk_field_open {
  double *value;
  int64_t *time;
};

struct hk_field {
  struct hk_field_rule rule;
  uint32_t room;                    /* nodes that all columns here have room for */
  struct hk_residual residual;      /* of that operator; with the same room */
  struct hk_field_offload *offload; /* of the residual's rows */
  struct hk_field_model model;      /* of that operator */
  struct hk_field_member *member;
  uint32_t n_members, top;    /* top: numbers are below */
  uint32_t n_left;            /* members that are LEFT */
  int64_t next;               /* the row that is closed next; NEVER: there was no point */
  int64_t newest;             /* row of any point */
  struct hk_field_open *open; /* wait + 1: row r at r % (wait + 1) */
  uint32_t waiting;           /* points in them */
  uint32_t behind;            /* members that hold `next` up, where it is counted */
  bool counted;
  bool coming; /* a point was put that has no place yet: */
  uint32_t coming_member;
  int64_t coming_row, coming_time;
  double coming_value;
  double *value;     /* residuals of the row that was closed last */
  int64_t *time;     /* and its times */
  float *ring;       /* AUTO: z of the last rows, HK_FIELD_RESIDENT of residual.room each; else NULL */
  uint32_t kept, at; /* rows in it, and the place of the next */
};

/* Makes member `number`, which is free and below rule.members. 0 or -ENOMEM. */
int hk_field_add(struct hk_field *field, uint32_t number);

/* Place of a row among those that are not closed. */
static inline struct hk_field_open *hk_field_open_row(const struct hk_field *f, int64_t row)
{
  const int64_t places = f->rule.wait + 1, rest = row % places;
  return &f->open[rest < 0 ? rest + places : rest];
}

#endif
