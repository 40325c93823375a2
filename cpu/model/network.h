/* A network of pipes full of a liquid: computes the pressures at its points and the flows in its cells for successive times.
 *
 * The equations in a cell are those of a line (pipeline.h), by the same scheme. A cell joins two points; nodes and the places
 * between the cells of a pipe are points. At each point the flows balance, or, where a pressure is measured, the pressure is
 * given. For each Newton step the two flows at the ends of a cell are eliminated by its two equations, which leaves one equation
 * for each point,
 *
 *   sum over its cells of (a ds_point + b ds_other) = rest,   a = (P / R + 1 / W) / 2,   b = (1 / W - P / R) / 2,
 *
 * with W, P > 0 of the cell's wave and push and R >= 1 of its friction: the matrix is symmetric and, since a > |b|, positive
 * definite, so that no pivots are exchanged (cpu/sparse/sparse.h).
 *
 * The steady state: Newton's method for the same equations without the terms of time (Todini and Pilati's global gradient
 * algorithm, 1988), with the same pattern.
 *
 * State: s = pressure / Z by point, then q at both ends by cell, from its first point to its second. On one machine and with one
 * version of the libraries the same numbers give the same bits. Thread: the owner's. */
#ifndef HK_NETWORK_H
#define HK_NETWORK_H

#include "cpu/model/pipeline.h"
#include "cpu/sparse/sparse.h"

#include <stdbool.h>
#include <stddef.h>

/* A measured point. */
struct hk_network_drive {
  uint32_t point;
  bool flow; /* what leaves the network there, m^3/s; else its pressure, Pa */
};

struct hk_network_shape {
  uint32_t points, cells, drives;
  const struct hk_pipeline_cell *cell;  /* with the impedance Z of the whole network */
  const uint32_t (*end)[2];             /* points of a cell */
  const struct hk_network_drive *drive; /* in each connected part at least one pressure; no point has two */
  const double *demand;                 /* m^3/s that leave, by point, beside the drives */
};

enum hk_network_what {
  HK_NETWORK_PRESSURE, /* of a point */
  HK_NETWORK_OUT,      /* what leaves the network at a point whose pressure is given, its demand included */
  HK_NETWORK_FROM,     /* of a cell: the flow at its first point, from there on */
  HK_NETWORK_INTO,     /* of a cell: the flow at its second point, from there back */
};

/* Something that can be read. */
struct hk_network_place {
  enum hk_network_what what;
  uint32_t at; /* point or cell */
};

struct hk_network {
  const struct hk_network_shape *shape; /* owned by the caller */
  double impedance;                     /* Z, Pa s/m^3 */
  double *state;
  struct hk_sparse *matrix;
  double *memory;
  bool *given;  /* by point: its pressure is measured */
  double error; /* the largest backward error of the last step */
};

/* Makes a network at rest with a pressure of zero. kind: of cpu/sparse/sparse.h; NULL: the faster one. Returns 0, -ENOMEM or
 * -E2BIG. hk_network_close: all zero is allowed. */
int hk_network_open(struct hk_network *network, const struct hk_network_shape *shape, double impedance,
                    const struct hk_sparse_kind *kind);
void hk_network_close(struct hk_network *network);
/* Bytes of a network, without its shape. */
uint64_t hk_network_bytes(const struct hk_network *network);

/* The steady state. is: values of the drives. friction: factor of the friction of all cells. Returns 0; or -EDOM: none was
 * found. After an error the state is invalid. */
int hk_network_steady(struct hk_network *network, const double *is, double friction);
/* Advances by dt seconds. leak: m^3/s that leave beside all else, by point; NULL: none. Returns 0; -EDOM: the equations are
 * singular; -ERANGE: there is no solution with a small error. After an error the state is unchanged. */
int hk_network_step(struct hk_network *network, const double *is, const double *leak, double dt, double friction);

/* Reads n values from the state; Pa and m^3/s. */
void hk_network_read(struct hk_network *network, const struct hk_network_place *place, uint32_t n, double *value);

/* Prepares the two functions below: the derivatives of a steady network with the flows of the state. Returns 0 or -EDOM. */
int hk_network_linearise(struct hk_network *network, double friction);
/* Derivatives of n values by the friction factor. Returns 0 or -ERANGE. */
int hk_network_by_friction(struct hk_network *network, const struct hk_network_place *place, uint32_t n, double *out);
/* Derivatives of one value by what leaves at each point, in m^3/s; at a point whose pressure is given, by that pressure, in Pa.
 * Returns 0 or -ERANGE. */
int hk_network_by_point(struct hk_network *network, const struct hk_network_place *place, double *out);

static inline size_t hk_network_numbers(const struct hk_network_shape *shape)
{
  return shape->points + 2 * (size_t)shape->cells;
}

#endif
