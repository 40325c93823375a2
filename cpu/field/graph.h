/* The graph of neighbours, by name, from a file:
 *
 *   HK_FIELD_GRAPH    lines of A B [weight]: A and B are neighbours; weight > 0, default 1
 *   HK_FIELD_NEAREST  lines of NAME X Y [Z], at most HK_FIELD_PLACES_MAX: the q nearest are neighbours
 *   HK_FIELD_LINE     lines of NAME X: positions on a line (focus.h); nobody is a neighbour
 *
 * Of more than q neighbours those with the greatest weight, or the shortest distance, are kept; of equal ones those that come
 * first. Words are separated by blanks, tabs or commas; a line that begins with # is a comment.
 *
 * A graph is immutable. Thread: any. */
#ifndef HK_FIELD_GRAPH_H
#define HK_FIELD_GRAPH_H

#include "cpu/field/rule.h"

#define HK_FIELD_PLACES_MAX 65536
#define HK_FIELD_GRAPH_BYTES ((size_t)256 << 20) /* maximum size of a file */

struct hk_field_graph;

/* Reads a graph from a file; hk_field_graph_parse: from a text in memory. kind: enum hk_field_neighbours, not AUTO. Returns 0 and
 * *out with one reference, or a negative errno with a message that names the line. */
int hk_field_graph_read(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *path, char *error, size_t size);
int hk_field_graph_parse(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *text, size_t length, char *error,
                         size_t size);
struct hk_field_graph *hk_field_graph_hold(struct hk_field_graph *graph); /* adds a reference */
void hk_field_graph_release(struct hk_field_graph *graph);                /* NULL is allowed */

uint32_t hk_field_graph_nodes(const struct hk_field_graph *graph);
/* HK_FIELD_LINE: the positions, by node; else NULL. */
const double *hk_field_graph_positions(const struct hk_field_graph *graph);
/* Finds the node with a name; HK_RESIDUAL_NONE: not in the graph. */
uint32_t hk_field_graph_find(const struct hk_field_graph *graph, const char *name, size_t length);
/* Neighbour k < q of a node; HK_RESIDUAL_NONE: the node has fewer. */
uint32_t hk_field_graph_neighbour(const struct hk_field_graph *graph, uint32_t node, uint32_t k);
/* The n nodes that have `node` as neighbour. */
const uint32_t *hk_field_graph_users(const struct hk_field_graph *graph, uint32_t node, uint32_t *n);
/* Number of nodes with fewer than 2 neighbours, which have no residual. */
uint32_t hk_field_graph_lonely(const struct hk_field_graph *graph);
/* Hash of the graph: different graphs share it with a probability of one in four billion; never 0. */
uint32_t hk_field_graph_mark(const struct hk_field_graph *graph);

#endif
