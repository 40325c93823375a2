/* State of a field, for its own files: field.c closes rows, compute.c computes them and finds neighbours, count.c counts, state.c
 * writes and reads, rule.c has the keys. */
#ifndef HK_FIELD_INTERNAL_H
#define HK_FIELD_INTERNAL_H

#include "cpu/field/attached_line.h"
#include "cpu/field/attached_model.h"
#include "cpu/field/field.h"
#include "cpu/field/filter.h"
#include "cpu/field/offload.h"
#include "cpu/field/residual.h"

#define HK_FIELD_NEVER INT64_MIN
#define HK_FIELD_VALUE_MAX 1e30

/* Status of a member number. LEFT: becomes free once it is removed from the neighbours of all members, which happens before the
 * next row or member. */
enum hk_field_status { HK_FIELD_FREE, HK_FIELD_MEMBER, HK_FIELD_LEFT };

struct hk_field_member {
  int64_t last;    /* row of the newest point; NEVER: none */
  int64_t from;    /* the row from which it participates; INT64_MAX: no point yet */
  uint32_t status; /* enum hk_field_status */
  uint32_t seen;   /* rows in which it had a z, counted as long as neighbours are chosen by that */
  uint32_t node;   /* node of the graph (binding.h); HK_RESIDUAL_NONE: none */
  uint32_t unused;
};

/* Points of a row that is not closed, by node. NaN: none. */
struct hk_field_open {
  double *value;
  int64_t *time;
};

/* A point that was put and is not in a row yet. */
struct hk_field_coming {
  bool is; /* there is one */
  uint32_t member;
  int64_t row, time;
  double value;
};

struct hk_field {
  struct hk_field_rule rule;
  uint32_t room;                    /* capacity of all columns here, in nodes */
  struct hk_residual residual;      /* for operator residual; with the same room */
  struct hk_field_offload *offload; /* computes rows on a device */
  struct hk_field_model model;      /* for operator model */
  struct hk_field_line line;        /* for operator focus */
  struct hk_filter *filter;         /* for operators despike and median, by member number; else NULL */
  struct hk_hoelder *hoelder;       /* likewise, for hoelder and arma */
  struct hk_arma *arma;             /* for arma */
  struct hk_field_member *member;
  uint32_t n_members, top;    /* top: member numbers are below it */
  uint32_t n_left;            /* members that are LEFT */
  int64_t next;               /* the row that is closed next; NEVER: no point yet */
  int64_t newest;             /* newest row with a point */
  struct hk_field_open *open; /* ring of wait + 1 rows: row r at r % (wait + 1) */
  uint32_t waiting;           /* points in `open` */
  uint32_t behind;            /* members for which `next` waits; valid if `counted` */
  bool counted;
  struct hk_field_coming coming;
  double *value;     /* residuals of the last closed row */
  int64_t *time;     /* times of the last closed row */
  float *ring;       /* AUTO: z of the last HK_FIELD_RESIDENT rows, residual.room numbers each; else NULL */
  uint32_t kept, at; /* rows in `ring`, and the place of the next one */
};

/* The plan's sensor of a member; HK_MODEL_NONE: none. */
static inline uint32_t hk_field_sensor_of(const struct hk_field *f, uint32_t member)
{
  const uint32_t node = hk_field_node(f, member);
  return f->model.is && node < hk_model_plan_of(f->model.is)->sensors ? node : HK_MODEL_NONE;
}

/* The sensor of a member on the line; HK_FOCUS_NONE: none. */
static inline uint32_t hk_field_place_of(const struct hk_field *f, uint32_t member)
{
  const uint32_t node = hk_field_node(f, member);
  return f->line.is && node < f->line.is->f.n ? f->line.is->rank[node] : HK_FOCUS_NONE;
}

/* The place of an open row. */
static inline struct hk_field_open *hk_field_open_row(const struct hk_field *f, int64_t row)
{
  const int64_t places = f->rule.wait + 1, rest = row % places;
  return &f->open[rest < 0 ? rest + places : rest];
}

#endif
