/* Who is whose neighbour, by name, from a file:
 *
 *   HK_FIELD_GRAPH    lines of A B [weight]: each is the other's neighbour; the weight is over 0, else 1
 *   HK_FIELD_NEAREST  lines of NAME X Y [Z]: the q that lie nearest, of up to HK_FIELD_PLACES_MAX
 *
 * Of more than q those of the greatest weight, or the shortest distance, stay; of equal ones those that stand first. Words are
 * divided by blanks, tabs or commas; a line that begins with # is none.
 *
 * It never changes once it was read. Thread: any. */
#ifndef HK_FIELD_GRAPH_H
#define HK_FIELD_GRAPH_H

#include "cpu/field/rule.h"

#define HK_FIELD_PLACES_MAX 65536
#define HK_FIELD_GRAPH_BYTES ((size_t)256 << 20) /* of a file, at most */

struct hk_field_graph;

/* kind: enum hk_field_neighbours, but AUTO. hk_field_graph_parse: of a text in memory. 0 and *out with one reference, or a
 * negative errno with a message, which names the line. */
int hk_field_graph_read(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *path, char *error, size_t size);
int hk_field_graph_parse(struct hk_field_graph **out, uint32_t kind, uint32_t q, const char *text, size_t length, char *error,
                         size_t size);
struct hk_field_graph *hk_field_graph_hold(struct hk_field_graph *graph); /* one reference more */
void hk_field_graph_release(struct hk_field_graph *graph);                /* NULL is allowed */

uint32_t hk_field_graph_nodes(const struct hk_field_graph *graph);
/* The number of a name; HK_RESIDUAL_NONE: it is none of its. */
uint32_t hk_field_graph_find(const struct hk_field_graph *graph, const char *name, size_t length);
/* Neighbour k < q of a node; HK_RESIDUAL_NONE: it has fewer. */
uint32_t hk_field_graph_neighbour(const struct hk_field_graph *graph, uint32_t node, uint32_t k);
/* Those that have a node as neighbour: n of them. */
const uint32_t *hk_field_graph_users(const struct hk_field_graph *graph, uint32_t node, uint32_t *n);
/* Nodes with fewer than 2 neighbours, for which there is no residual. */
uint32_t hk_field_graph_lonely(const struct hk_field_graph *graph);
/* A number that two graphs that differ do not share, but for one in four billion; never 0. */
uint32_t hk_field_graph_mark(const struct hk_field_graph *graph);

#endif
