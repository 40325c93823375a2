/* Networks of pipes, and full bands, as sparse matrices for bench_sparse.c. */
#ifndef HK_SPARSE_NETWORK_H
#define HK_SPARSE_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#define RUNS 5u
#define ROW_MAX 10 /* more than a column has: a node has at most 4 pipes, whose 8 equations contain its pressure */

struct network {
  int n, nodes, pipes;
  int *from, *to;   /* of pipes */
  int *begin, *row; /* columns of A */
  double *value, *right;
  uint32_t runs;
};

/* Zeroed memory; ends the program if there is none. */
void *room(size_t bytes);
/* Unknowns: pressures, then two flows of each pipe; equations likewise, so that most diagonals exist. */
struct network *make_network(int side, int loops);
/* One symmetric equation for each node, as the daemon has networks: the flows are eliminated. Pipes are those of `all`. */
struct network *make_nodes(const struct network *all);
/* A pipe's coefficient between its two nodes. */
double weight_of(int pipe);
/* A random band, full within `half` diagonals on either side; it has no pipes. */
struct network *make_full_band(int n, int half);
void drop_matrix(struct network *w); /* everything except its pipes and its right side */

#endif
