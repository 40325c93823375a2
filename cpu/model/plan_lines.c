/* Lines of model files: see plan_lines.h. */
#include "cpu/model/plan_lines.h"
#include "cpu/model/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define WORDS 9 /* maximum number of words in a line, plus one */

/* Position in the text. */
struct cursor {
  const char *at, *end;
  uint32_t line;
};

/* --- errors ------------------------------------------------------------------------------------------------------------- */

int hk_plan_complain(const struct hk_plan_lines *r, const struct hk_plan_word *w, const char *what)
{
  char shown[65];
  uint32_t n = 0;
  for (; n < w->is.length && n + 1 < sizeof shown; n++)
    shown[n] = (unsigned char)w->is.text[n] < ' ' || w->is.text[n] == 127 ? '?' : w->is.text[n];
  shown[n] = 0;
  snprintf(r->error, r->size, "line %u, column %u: %s: %s", w->line, w->column, shown, what);
  return -EINVAL;
}

int hk_plan_no_memory(const struct hk_plan_lines *r)
{
  snprintf(r->error, r->size, "out of memory");
  return -ENOMEM;
}

/* --- words -------------------------------------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

/* Splits the next line into words; those beyond WORDS are ignored. Returns their number. */
static uint32_t plan_lines_next_line(struct cursor *c, struct hk_plan_word out[WORDS])
{
  const char *from = c->at;
  uint32_t n = 0;
  c->line++;
  while (c->at < c->end && *c->at != '\n' && *c->at != '#') {
    const char *word = c->at;
    while (c->at < c->end && !is_blank(*c->at) && *c->at != '\n' && *c->at != '#')
      c->at++;
    if (c->at > word && n < WORDS)
      out[n++] = (struct hk_plan_word){ { word, (uint32_t)(c->at - word) }, c->line, (uint32_t)(word - from) + 1 };
    while (c->at < c->end && is_blank(*c->at))
      c->at++;
  }
  while (c->at < c->end && *c->at != '\n')
    c->at++;
  c->at += c->at < c->end;
  return n;
}

bool hk_plan_is(const struct hk_plan_word *w, const char *text)
{
  return w->is.length == strlen(text) && memcmp(w->is.text, text, w->is.length) == 0;
}

int hk_plan_number(const struct hk_plan_lines *r, const struct hk_plan_word *w, const char *what, double least, double most,
                   double *out)
{
  char copy[64], text[128], *end;
  const uint32_t n = w->is.length < sizeof copy ? w->is.length : 0;
  memcpy(copy, w->is.text, n);
  copy[n] = 0;
  *out = strtod(copy, &end);
  if (n > 0 && *end == 0 && *out >= least && *out <= most)
    return 0;
  snprintf(text, sizeof text, "not %s, from %g to %g", what, least, most);
  return hk_plan_complain(r, w, text);
}

/* --- lines -------------------------------------------------------------------------------------------------------------- */

/* Makes room for one more element in a column of n, whose capacity is the next power of two. NULL: out of memory. */
static void *plan_lines_one_more(void *column, uint32_t n, size_t bytes)
{
  return (n & (n - 1)) == 0 ? realloc(column, (n > 0 ? 2 * (size_t)n : 1) * bytes) : column;
}

static int take_fluid(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->fluid)
    return hk_plan_complain(r, w, "was said before");
  r->fluid = true;
  return hk_plan_number(r, &w[1], "a density in kg/m3", 0.1, 30000, &r->density);
}

struct hk_plan_unit {
  const char *name;
  double is;
};

/* NULL: none has that name. */
static const struct hk_plan_unit *find_unit(const struct hk_plan_unit *units, size_t n, const struct hk_plan_word *w)
{
  for (size_t i = 0; i < n; i++)
    if (hk_plan_is(w, units[i].name))
      return &units[i];
  return NULL;
}

/* Whether something was said of a matrix. */
static bool begun_matrix(const struct hk_plan_lines *r)
{
  bool begun = r->matrix.constants > 0 || r->matrix.unit.is.length > 0;
  for (uint32_t i = 0; i < HK_PLAN_FILES; i++)
    begun |= r->matrix.file[i].is.length > 0;
  return begun;
}

static int take_kind(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->edges > 0 || r->lines > 0 || r->sensors > 0 || r->heights > 0 || r->fluid || r->units || r->hot || r->network ||
      r->matrix.is || begun_matrix(r))
    return hk_plan_complain(r, w, "the kind comes before all else, and once");
  r->matrix.is = hk_plan_is(&w[1], "matrix");
  if (!hk_plan_is(&w[1], "pipes") && !hk_plan_is(&w[1], "heat") && !hk_plan_is(&w[1], "network") && !r->matrix.is)
    return hk_plan_complain(r, &w[1], "neither pipes, which is the default, nor heat, network or matrix");
  r->hot = hk_plan_is(&w[1], "heat");
  r->network = hk_plan_is(&w[1], "network");
  if (r->hot)
    r->unit[0] = "C";
  return 0;
}

static int take_water(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  const int status = take_fluid(r, w);
  return status ? status : hk_plan_number(r, &w[2], "a specific heat in J/(kg K)", 100, 20000, &r->heat);
}

static int take_ground(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->grounded)
    return hk_plan_complain(r, w, "was said before");
  r->grounded = true;
  return hk_plan_number(r, &w[1], "a temperature", -100, 500, &r->ground);
}

static int take_units(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  static const struct hk_plan_unit pressures[] = { { "Pa", 1 }, { "kPa", 1e3 }, { "bar", 1e5 }, { "psi", 6894.757293168361 } },
                                   temperatures[] = { { "C", 1 }, { "K", 1 }, { "F", 1 } }, /* the equations take any */
      flows[] = { { "m3/s", 1 }, { "m3/h", 1.0 / 3600 }, { "l/s", 1e-3 } };
  if (r->units)
    return hk_plan_complain(r, w, "was said before");
  const struct hk_plan_unit *first =
      r->hot ? find_unit(temperatures, COUNT(temperatures), &w[1]) : find_unit(pressures, COUNT(pressures), &w[1]);
  const struct hk_plan_unit *flow = find_unit(flows, COUNT(flows), &w[2]);
  if (!first)
    return hk_plan_complain(r, &w[1], r->hot ? "no unit of temperature: C, K or F" : "no unit of pressure: Pa, kPa, bar or psi");
  if (!flow)
    return hk_plan_complain(r, &w[2], "no unit of flow: m3/s, m3/h or l/s");
  r->units = true;
  r->pressure = first->is;
  r->flow = flow->is;
  r->unit[0] = first->name;
  r->unit[1] = flow->name;
  return 0;
}

/* Adds a line, before its pipes. */
static int add_line(struct hk_plan_lines *r, const struct hk_plan_word *w, struct hk_plan_word name)
{
  struct hk_plan_line *line = plan_lines_one_more(r->line, r->lines, sizeof *line);
  if (!line)
    return hk_plan_no_memory(r);
  r->line = line;
  if (r->lines == HK_MODEL_LINES_MAX)
    return hk_plan_complain(r, w, "there are 65536 lines already");
  line[r->lines++] = (struct hk_plan_line){ .name = name, .edge = r->edges };
  return 0;
}

static int take_name(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->lines == 0 ? r->sensors > 0 || r->heights > 0 : r->line[0].name.is.length == 0)
    return hk_plan_complain(r, &w[1], "what stands before the first line belongs to none: begin it with a line, too");
  if (r->lines > 0 && r->line[r->lines - 1].edge == r->edges)
    return hk_plan_complain(r, &w[1], "the line before has no pipe");
  return add_line(r, &w[1], w[1]);
}

static uint32_t this_line(const struct hk_plan_lines *r)
{
  return r->lines > 0 ? r->lines - 1 : 0;
}

/* before: cells of the line so far. */
static int take_cells(const struct hk_plan_lines *r, const struct hk_plan_word *w, uint32_t before, double *cells)
{
  const int status = hk_plan_number(r, w, "a number of cells", 1, HK_MODEL_CELLS_MAX, cells);
  if (status == 0 && *cells != floor(*cells))
    return hk_plan_complain(r, w, "not a whole number");
  if (status == 0 && r->network && before + *cells > HK_MODEL_NETWORK_CELLS_MAX)
    return hk_plan_complain(r, w, "the network has over 1000000 cells with these");
  if (status == 0 && !r->network && before + *cells > HK_MODEL_CELLS_MAX)
    return hk_plan_complain(r, w, "the line has over 100000 cells with these");
  if (status == 0 && r->cells + *cells > HK_MODEL_ALL_CELLS_MAX)
    return hk_plan_complain(r, w, "the lines have over 16777216 cells with these");
  return status;
}

static int plan_lines_take_edge(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  struct hk_plan_edge *pipe = plan_lines_one_more(r->edge, r->edges, sizeof *pipe);
  if (!pipe)
    return hk_plan_no_memory(r);
  r->edge = pipe;
  int status = r->lines == 0 ? add_line(r, w, (struct hk_plan_word){ 0 }) : 0;
  if (status != 0)
    return status;
  struct hk_plan_line *line = &r->line[r->lines - 1];
  pipe += r->edges;
  *pipe = (struct hk_plan_edge){ .from = w[1], .to = w[2] };
  double cells = 0;
  if (r->edges == HK_MODEL_PIPES_MAX)
    return hk_plan_complain(r, w, "there are 65536 pipes already");
  if (r->network && hk_plan_same(&pipe->from.is, &pipe->to.is))
    return hk_plan_complain(r, &w[2], "the pipe begins at this node, too");
  if (!r->network && r->edges - line->edge == HK_MODEL_LINE_PIPES_MAX)
    return hk_plan_complain(r, w, "the line has 4096 pipes already");
  if (!r->network && r->edges > line->edge && !hk_plan_same(&pipe->from.is, &pipe[-1].to.is))
    return hk_plan_complain(r, &w[1],
                            "the pipe before ends at another node; pipes of a line stand one after the other, without branches "
                            "(kind network has them)");
  status = hk_plan_number(r, &w[3], "a length in m", 0.01, 1e7, &pipe->length);
  status = status ? status : hk_plan_number(r, &w[4], "a diameter in m", 1e-4, 50, &pipe->diameter);
  if (status == 0 && r->hot)
    status = hk_plan_number(r, &w[5], "a loss in W/(m K)", 0, 1000, &pipe->friction);
  else if (status == 0)
    status = hk_plan_number(r, &w[5], "a friction factor of Darcy's", 0, 10, &pipe->friction);
  if (status == 0 && !r->hot)
    status = hk_plan_number(r, &w[6], "a wave speed in m/s", 1, 1e4, &pipe->wave);
  status = status ? status : take_cells(r, &w[r->hot ? 6 : 7], line->cells, &cells);
  pipe->cells = status == 0 ? (uint32_t)cells : 0;
  line->cells += pipe->cells;
  r->cells += pipe->cells;
  r->edges++;
  return status;
}

/* Adds what is said of a node to a column. Returns the new element, or NULL with a message. */
static struct hk_plan_node *add_node(const struct hk_plan_lines *r, const struct hk_plan_word *w, struct hk_plan_node **column,
                                     uint32_t n)
{
  struct hk_plan_node *node = plan_lines_one_more(*column, n, sizeof *node);
  if (!node) {
    (void)hk_plan_no_memory(r);
    return NULL;
  }
  *column = node;
  node[n] = (struct hk_plan_node){ .node = w[1], .line = this_line(r) };
  return &node[n];
}

static int take_height(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->heights > HK_MODEL_PIPES_MAX)
    return hk_plan_complain(r, w, "there are 65537 heights already");
  struct hk_plan_node *height = add_node(r, w, &r->height, r->heights);
  if (!height)
    return -ENOMEM;
  r->heights++;
  return hk_plan_number(r, &w[2], "a height in m", -12000, 12000, &height->value);
}

static int take_demand(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->demands > HK_MODEL_PIPES_MAX)
    return hk_plan_complain(r, w, "there are 65537 demands already");
  struct hk_plan_node *demand = add_node(r, w, &r->demand, r->demands);
  if (!demand)
    return -ENOMEM;
  r->demands++;
  return hk_plan_number(r, &w[2], "a flow that leaves there", -1e9, 1e9, &demand->value);
}

/* A sensor of a network: of four words behind its name where it is the flow in a pipe, else of three. */
static int plan_lines_take_place(struct hk_plan_lines *r, const struct hk_plan_word *w, struct hk_plan_sensor *out)
{
  const bool within = hk_plan_is(&w[2], "q"), out_or_in = hk_plan_is(&w[2], "out") || hk_plan_is(&w[2], "in");
  const struct hk_plan_word *role = &w[within ? 5 : 4];
  if (!within && !out_or_in && !hk_plan_is(&w[2], "p"))
    return hk_plan_complain(r, &w[2],
                            "neither p, a pressure, nor in or out, a flow into or out of the network, nor q, one in a pipe");
  if (role->is.length == 0 || (!within && w[5].is.length > 0))
    return hk_plan_complain(
        r, w, within ? "the form is: sensor NAME q FROM TO check" : "the form is: sensor NAME p|in|out NODE boundary|check");
  if (!hk_plan_is(role, "boundary") && !hk_plan_is(role, "check"))
    return hk_plan_complain(r, role, "neither boundary, what drives the model, nor check, what it is compared with");
  if (within && hk_plan_is(role, "boundary"))
    return hk_plan_complain(r, role, "a flow in a pipe cannot drive the model; make it a check");
  *out = (struct hk_plan_sensor){ .name = w[1],
                                  .node = w[3],
                                  .to = within ? w[4] : (struct hk_plan_word){ .line = 0 },
                                  .flow = !hk_plan_is(&w[2], "p"),
                                  .boundary = hk_plan_is(role, "boundary"),
                                  .in = hk_plan_is(&w[2], "in") };
  r->sensors++;
  return 0;
}

static int plan_lines_take_sensor(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  struct hk_plan_sensor *sensor = plan_lines_one_more(r->sensor, r->sensors, sizeof *sensor);
  if (!sensor)
    return hk_plan_no_memory(r);
  r->sensor = sensor;
  if (r->sensors == HK_MODEL_SENSORS_MAX)
    return hk_plan_complain(r, &w[1], "there are 65536 sensors already");
  if (r->network)
    return plan_lines_take_place(r, w, &sensor[r->sensors]);
  if (!hk_plan_is(&w[2], r->hot ? "t" : "p") && !hk_plan_is(&w[2], "q"))
    return hk_plan_complain(r, &w[2],
                            r->hot ? "neither t, a temperature, nor q, a flow" : "neither p, a pressure, nor q, a flow");
  if (!hk_plan_is(&w[4], "boundary") && !hk_plan_is(&w[4], "check"))
    return hk_plan_complain(r, &w[4], "neither boundary, what drives the model, nor check, what it is compared with");
  sensor[r->sensors++] = (struct hk_plan_sensor){
    .name = w[1], .node = w[3], .line = this_line(r), .flow = hk_plan_is(&w[2], "q"), .boundary = hk_plan_is(&w[4], "boundary")
  };
  return 0;
}

/* --- matrices -------------------------------------------------------------------------------------------------------------- */

static int take_file(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  static const char *const name[HK_PLAN_FILES] = { "equations", "storage", "inputs", "readings" };
  uint32_t i = 0;
  while (!hk_plan_is(w, name[i]))
    i++;
  if (r->matrix.file[i].is.length > 0)
    return hk_plan_complain(r, w, "was said before");
  r->matrix.file[i] = w[1];
  return 0;
}

static int take_constant(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  struct hk_plan_constant *constant = plan_lines_one_more(r->matrix.constant, r->matrix.constants, sizeof *constant);
  if (!constant)
    return hk_plan_no_memory(r);
  r->matrix.constant = constant;
  if (r->matrix.constants == HK_MODEL_SENSORS_MAX)
    return hk_plan_complain(r, w, "there are 65536 constants already");
  constant[r->matrix.constants].column = w[1];
  return hk_plan_number(r, &w[2], "a value", -1e100, 1e100, &constant[r->matrix.constants++].value);
}

static int plan_lines_take_unit(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  if (r->matrix.unit.is.length > 0)
    return hk_plan_complain(r, w, "was said before");
  if (w[1].is.length >= HK_PLAN_UNIT_MAX)
    return hk_plan_complain(r, &w[1], "the name of a unit has at most 15 bytes");
  r->matrix.unit = w[1];
  return 0;
}

static int take_reading(struct hk_plan_lines *r, const struct hk_plan_word *w)
{
  struct hk_plan_sensor *sensor = plan_lines_one_more(r->sensor, r->sensors, sizeof *sensor);
  const bool at = hk_plan_is(&w[2], "at"), input = hk_plan_is(&w[2], "input"), boundary = hk_plan_is(&w[4], "boundary");
  if (!sensor)
    return hk_plan_no_memory(r);
  r->sensor = sensor;
  if (r->sensors == HK_MODEL_SENSORS_MAX)
    return hk_plan_complain(r, &w[1], "there are 65536 sensors already");
  if (!at && !input && !hk_plan_is(&w[2], "reading"))
    return hk_plan_complain(r, &w[2],
                            "neither at, an unknown, nor input, a column of the inputs, nor reading, a row of the readings");
  if (!boundary && !hk_plan_is(&w[4], "check"))
    return hk_plan_complain(r, &w[4], "neither boundary, what drives the model, nor check, what it is compared with");
  if (input && !boundary)
    return hk_plan_complain(r, &w[4], "the model does not compute its inputs; an input is a boundary");
  if (!input && !at && boundary)
    return hk_plan_complain(r, &w[4], "a reading cannot drive the model; make it a check");
  sensor[r->sensors++] = (struct hk_plan_sensor){ .name = w[1],
                                                  .node = w[3],
                                                  .flow = input,
                                                  .boundary = boundary,
                                                  .what = at      ? HK_MATRIX_UNKNOWN
                                                          : input ? HK_MATRIX_INPUT
                                                                  : HK_MATRIX_READING };
  return 0;
}

static int check_equations(const struct hk_plan_lines *r)
{
  if (r->matrix.file[HK_PLAN_EQUATIONS].is.length > 0)
    return 0;
  snprintf(r->error, r->size, "there is no equations: the file of the matrix A");
  return -EINVAL;
}

/* --- the whole ---------------------------------------------------------------------------------------------------------- */

static int plan_lines_take_line(struct hk_plan_lines *r, const struct hk_plan_word *w, uint32_t n)
{
  static const struct {
    const char *name, *form;
    uint32_t words;
    int (*take)(struct hk_plan_lines *r, const struct hk_plan_word *w);
    enum { PIPES = 1, HEAT = 2, NETWORK = 4, MATRIX = 8, LINES = PIPES | HEAT, LIQUID = PIPES | NETWORK, ALL = 15 } of;
  } kinds[] = {
    { "kind", "the form is: kind pipes|heat|network|matrix", 2, take_kind, ALL },
    { "fluid", "the form is: fluid DENSITY", 2, take_fluid, LIQUID },
    { "fluid", "the form is: fluid DENSITY HEAT", 3, take_water, HEAT },
    { "ground", "the form is: ground TEMPERATURE", 2, take_ground, HEAT },
    { "units", "the form is: units Pa|kPa|bar|psi m3/s|m3/h|l/s", 3, take_units, LIQUID },
    { "units", "the form is: units C|K|F m3/s|m3/h|l/s", 3, take_units, HEAT },
    { "line", "the form is: line NAME", 2, take_name, LINES },
    { "edge", "the form is: edge A B LENGTH DIAMETER FRICTION WAVE CELLS", 8, plan_lines_take_edge, LIQUID },
    { "edge", "the form is: edge A B LENGTH DIAMETER LOSS CELLS", 7, plan_lines_take_edge, HEAT },
    { "height", "the form is: height NODE HEIGHT", 3, take_height, LIQUID },
    { "demand", "the form is: demand NODE FLOW", 3, take_demand, NETWORK },
    { "sensor", "the form is: sensor NAME p|q NODE boundary|check", 5, plan_lines_take_sensor, PIPES },
    { "sensor", "the form is: sensor NAME t|q NODE boundary|check", 5, plan_lines_take_sensor, HEAT },
    { "sensor", "the form is: sensor NAME p|in|out NODE boundary|check, or sensor NAME q FROM TO check", 0,
      plan_lines_take_sensor, NETWORK },
    { "equations", "the form is: equations FILE", 2, take_file, MATRIX },
    { "storage", "the form is: storage FILE", 2, take_file, MATRIX },
    { "inputs", "the form is: inputs FILE", 2, take_file, MATRIX },
    { "readings", "the form is: readings FILE", 2, take_file, MATRIX },
    { "constant", "the form is: constant COLUMN VALUE", 3, take_constant, MATRIX },
    { "unit", "the form is: unit NAME", 2, plan_lines_take_unit, MATRIX },
    { "sensor",
      "the form is: sensor NAME at UNKNOWN boundary|check, or sensor NAME input COLUMN boundary, or sensor NAME reading ROW "
      "check",
      5, take_reading, MATRIX },
  };
  const uint32_t of = r->hot ? HEAT : r->network ? NETWORK : r->matrix.is ? MATRIX : PIPES;
  for (size_t i = 0; i < COUNT(kinds); i++)
    if (hk_plan_is(&w[0], kinds[i].name) && (kinds[i].of & of) != 0)
      return n == kinds[i].words || (kinds[i].words == 0 && (n == 5 || n == 6)) ? kinds[i].take(r, w)
                                                                                : hk_plan_complain(r, &w[0], kinds[i].form);
  return hk_plan_complain(
      r, &w[0],
      r->hot ? "a line of the file of heat lines begins with kind, fluid, ground, units, line, edge or sensor"
      : r->matrix.is
          ? "a line of the file of matrices begins with kind, equations, storage, inputs, readings, constant, unit or sensor"
      : r->network ? "a line of the file of a network begins with kind, fluid, units, edge, height, demand or sensor"
                   : "a line of the file begins with kind, fluid, units, line, edge, height or sensor");
}

int hk_plan_lines_read(struct hk_plan_lines *r, const char *text, size_t length)
{
  struct cursor cursor = { .at = text, .end = text + length };
  int status = 0;
  r->density = 1000;
  r->heat = 4186;
  r->pressure = r->flow = 1;
  r->unit[0] = "Pa";
  r->unit[1] = "m3/s";
  while (cursor.at < cursor.end && status == 0) {
    struct hk_plan_word words[WORDS] = { 0 };
    const uint32_t n = plan_lines_next_line(&cursor, words);
    status = n > 0 ? plan_lines_take_line(r, words, n) : 0;
  }
  if (status == 0 && r->matrix.is)
    return check_equations(r);
  if (status == 0 && r->edges == 0) {
    snprintf(r->error, r->size, "there is no edge: the line has no pipe");
    status = -EINVAL;
  }
  if (status == 0 && r->line[r->lines - 1].edge == r->edges)
    status = hk_plan_complain(r, &r->line[r->lines - 1].name, "the line has no pipe");
  if (status == 0 && r->hot && !r->grounded) {
    snprintf(r->error, r->size, "there is no ground: its temperature, to which heat is lost");
    status = -EINVAL;
  }
  return status;
}

void hk_plan_lines_close(struct hk_plan_lines *r)
{
  free(r->line);
  free(r->edge);
  free(r->sensor);
  free(r->height);
  free(r->demand);
  free(r->matrix.constant);
}
