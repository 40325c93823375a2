/* What the file of a field's rule says: who is whose neighbour, or what the line of pipes is; or nothing, where the rule names no
 * file. Thread: any. */
#ifndef HK_FIELD_FILE_H
#define HK_FIELD_FILE_H

#include "cpu/field/graph.h"

/* One of them, or neither. */
struct hk_field_file {
  struct hk_field_graph *graph;
  const struct hk_model_plan *plan;
};

/* Reads it. All zero where the rule names none. 0, or a negative errno with a message. */
int hk_field_file_read(struct hk_field_file *out, const struct hk_field_rule *rule, char *error, size_t size);
struct hk_field_file hk_field_file_hold(const struct hk_field_file *file); /* one reference more */
void hk_field_file_release(struct hk_field_file *file);                    /* all zero is fine, and what it is then */
/* As hk_field_graph_mark; 0: there is no file. */
uint32_t hk_field_file_mark(const struct hk_field_file *file);

#endif
