/* See line_list.h. */
#include "daemon/server/line_list.h"

#include "cpu/model/profile.h"
#include "proto/wire/message.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NAMES_MAX 1000u /* lines of a model that are named */
#define NODES_MAX 20u   /* nodes of a network where a leak may be, likewise */

static void line_list_number(struct hk_buffer *out, const char *name, double value)
{
  hk_buffer_print(out, ",\"%s\":", name);
  hk_json_number(out, value, 7);
}

static void known(struct hk_buffer *out, const char *name, double value)
{
  if (!isnan(value))
    line_list_number(out, name, value);
}

static void line_list_word(struct hk_buffer *out, const char *name, const struct hk_model_word *word)
{
  hk_buffer_print(out, "\"%s\":", name);
  hk_json_string(out, word->text ? word->text : "", word->length);
}

/* Where a sensor of a network is: its node, or between which two nodes a flow in a pipe is. */
static void line_list_node_of(struct hk_buffer *out, const struct hk_model_plan *plan, uint32_t sensor)
{
  const struct hk_network_place *place = &plan->place[sensor];
  const bool within = place->what == HK_NETWORK_FROM || place->what == HK_NETWORK_INTO;
  const struct hk_model_pipe *pipe = plan->pipe;
  hk_buffer_put(out, ",", 1);
  line_list_word(out, "node", &plan->node[plan->sensor[sensor].point]);
  if (!within)
    return;
  while (place->at >= pipe->first + pipe->cells)
    pipe++;
  hk_buffer_put(out, ",", 1);
  line_list_word(out, "to", place->what == HK_NETWORK_FROM ? &pipe->to : &pipe->from);
}

/* Where a sensor of a process given as matrices is. */
static void place_in(struct hk_buffer *out, const struct hk_matrix_place *where)
{
  static const char *const what[] = {
    [HK_MATRIX_UNKNOWN] = "unknown", [HK_MATRIX_READING] = "reading", [HK_MATRIX_INPUT] = "input"
  };
  hk_buffer_print(out, ",\"node\":\"%s %" PRIu32 "\"", what[where->what], where->at + 1);
}

/* The nodes of a network where a leak may be. */
static void nodes(struct hk_buffer *out, const struct hk_profile *p)
{
  hk_buffer_print(out, ",\"near\":%" PRIu32 ",\"nodes\":[", p->nodes);
  for (uint32_t i = 0; i < p->nodes && i < NODES_MAX; i++) {
    hk_buffer_print(out, i > 0 ? ",{" : "{");
    line_list_word(out, "node", &p->plan->node[p->node[i].node]);
    line_list_number(out, "share", p->node[i].share);
    line_list_number(out, "size", p->node[i].size);
    hk_buffer_put(out, "}", 1);
  }
  hk_buffer_put(out, "]", 1);
}

static void points(struct hk_buffer *out, const struct hk_profile *p)
{
  hk_buffer_print(out, ",\"points\":[");
  for (uint32_t i = 0; i < p->points; i++) {
    const double value[3] = { p->point[i].place, p->point[i].pressure, p->point[i].flow };
    for (uint32_t k = 0; k < 3; k++) {
      hk_buffer_print(out, "%s", k > 0 ? "," : i > 0 ? ",[" : "[");
      hk_json_number(out, value[k], 7);
    }
    hk_buffer_put(out, "]", 1);
  }
  hk_buffer_put(out, "]", 1);
}

/* What is not a flow. */
static const char *line_list_level_of(const struct hk_profile *p)
{
  return p->plan->matrix ? "value" : p->plan->heat ? "temperature" : "pressure";
}

static void line_list_sensors(struct hk_buffer *out, const struct hk_profile *p)
{
  hk_buffer_print(out, ",\"sensors\":[");
  for (uint32_t i = 0; i < p->sensors; i++) {
    const struct hk_profile_sensor *s = &p->sensor[i];
    const struct hk_model_sensor *is = &p->plan->sensor[s->sensor];
    hk_buffer_print(out, i > 0 ? ",{" : "{");
    line_list_word(out, "name", &is->name);
    hk_buffer_print(out, ",\"kind\":\"%s\",\"role\":\"%s\"", is->flow && !p->plan->matrix ? "flow" : line_list_level_of(p),
                    is->boundary ? "boundary" : "check");
    if (p->plan->network)
      line_list_node_of(out, p->plan, s->sensor);
    else if (p->plan->matrix)
      place_in(out, &p->plan->where[s->sensor]);
    else
      line_list_number(out, "place", s->place);
    known(out, "value", s->reading);
    known(out, "model", s->seen);
    known(out, "departs", s->recent);
    known(out, "error", s->error);
    known(out, "explained", s->explained);
    hk_buffer_put(out, "}", 1);
  }
  hk_buffer_put(out, "]", 1);
}

static void cause(struct hk_buffer *out, const struct hk_profile *p)
{
  const struct hk_profile_cause *c = &p->cause;
  if (c->kind == HK_CAUSE_NONE)
    return;
  hk_buffer_print(out, ",\"cause\":{\"kind\":\"%s\"", c->kind == HK_CAUSE_LEAK ? "leak" : "sensor");
  line_list_number(out, "share", c->share);
  line_list_number(out, "size", c->size);
  if (c->kind == HK_CAUSE_LEAK && p->plan->network) {
    nodes(out, p);
  } else if (c->kind == HK_CAUSE_LEAK) {
    line_list_number(out, "place", c->place);
    line_list_number(out, "from", c->from);
    line_list_number(out, "to", c->to);
  } else {
    hk_buffer_put(out, ",", 1);
    line_list_word(out, "sensor", &p->plan->sensor[c->sensor].name);
  }
  hk_buffer_put(out, "}", 1);
}

void hk_line_json(struct hk_buffer *out, const struct hk_profile *p)
{
  hk_buffer_print(out, ",\"count\":%" PRIu32 ",\"lines\":[", p->plan->lines);
  for (uint32_t i = 0; i < p->plan->lines && i < NAMES_MAX; i++) {
    hk_buffer_print(out, "%s", i > 0 ? "," : "");
    hk_json_string(out, p->plan->line[i].name.text ? p->plan->line[i].name.text : "", p->plan->line[i].name.length);
  }
  hk_buffer_print(out, "],\"line\":{\"number\":%" PRIu32 ",", p->line);
  line_list_word(out, "name", &p->plan->line[p->line].name);
  hk_buffer_print(out, ",\"running\":%s,\"units\":{\"%s\":", p->running ? "true" : "false", line_list_level_of(p));
  hk_json_string(out, p->plan->unit[0], strlen(p->plan->unit[0]));
  hk_buffer_print(out, ",\"flow\":\"%s\"}", p->plan->unit[1]);
  line_list_number(out, "friction", p->friction);
  line_list_number(out, "length", p->length);
  if (p->plan->network)
    hk_buffer_print(out, ",\"network\":{\"nodes\":%" PRIu32 ",\"pipes\":%" PRIu32 "}", p->plan->nodes, p->plan->pipes);
  if (p->plan->matrix)
    hk_buffer_print(out, ",\"matrix\":{\"unknowns\":%" PRIu32 "}", p->plan->matrix->n);
  points(out, p);
  line_list_sensors(out, p);
  cause(out, p);
  hk_buffer_put(out, "}", 1);
}
