/* The contents of the file of a field's rule: the graph of neighbours, the positions on a line, or the plan of the lines of
 * pipes; empty if the rule names no file. Thread: any. */
#ifndef HK_FIELD_FILE_H
#define HK_FIELD_FILE_H

#include "cpu/field/graph.h"

/* At most one of the two. */
struct hk_field_file {
  struct hk_field_graph *graph;
  const struct hk_model_plan *plan;
};

/* Reads the file; all zero if the rule names none. Returns 0, or a negative errno with a message. */
int hk_field_file_read(struct hk_field_file *out, const struct hk_field_rule *rule, char *error, size_t size);
struct hk_field_file hk_field_file_hold(const struct hk_field_file *file); /* adds a reference */
void hk_field_file_release(struct hk_field_file *file);                    /* zeroes it; all zero is allowed */
/* As hk_field_graph_mark; 0: no file. */
uint32_t hk_field_file_mark(const struct hk_field_file *file);

#endif
