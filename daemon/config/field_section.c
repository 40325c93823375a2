/* Fields of a configuration: see field_section.h. */
#include "daemon/config/field_section.h"
#include "cpu/field/focus.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static struct hk_config_field *field_section_last_of(struct hk_config_reading *r)
{
  return &r->config->fields[r->config->n_fields - 1];
}

bool hk_config_field_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_field made = { .rule = hk_field_default() };
  bool taken = false;
  for (uint32_t i = 0; i < c->n_fields; i++)
    taken |= strcmp(c->fields[i].name, name) == 0;
  if (name[0] == 0 || strchr(name, HK_DERIVED_MARK) || strlen(name) >= HK_CONFIG_NAME_MAX - sizeof "#residual.novelty")
    hk_config_complain(r, r->line, "[field NAME]: a name has no %c, and is at most %zu bytes long", HK_DERIVED_MARK,
                       HK_CONFIG_NAME_MAX - sizeof "#residual.novelty" - 1);
  else if (taken)
    hk_config_complain(r, r->line, "there is a [field %s] already", name);
  else if (c->n_fields == HK_CONFIG_FIELDS_MAX)
    hk_config_complain(r, r->line, "more than %d fields", HK_CONFIG_FIELDS_MAX);
  else
    memcpy(made.name, name, strlen(name) + 1);
  if (!made.name[0])
    return false;
  c->fields[c->n_fields++] = made;
  return true;
}

static void take_match(struct hk_config_reading *r, const char *value)
{
  struct hk_config_field *f = field_section_last_of(r);
  const char *capture = strstr(value, "(*)");
  const bool plain = !strpbrk(value, "()");
  if (value[0] == 0 || strlen(value) >= sizeof f->match ||
      (!plain && (!capture || strcspn(value, "()") != (size_t)(capture - value) || strpbrk(capture + 3, "()")))) {
    hk_config_complain(
        r, r->line,
        "match = %.64s: a glob is needed, such as roof/*/power, or one with a capture, (*), such as plant/(*)/power: "
        "each text that it matches is a field",
        value);
    return;
  }
  memcpy(f->match, value, strlen(value) + 1);
  f->capture = plain ? HK_CONFIG_NO_CAPTURE : (uint32_t)(capture - value);
}

void hk_config_field_key(struct hk_config_reading *r, const char *name, const char *value)
{
  struct hk_config_field *f = field_section_last_of(r);
  char error[256];
  if (strcmp(name, "match") == 0) {
    take_match(r, value);
  } else if (strcmp(name, "detector") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof f->detector)
      hk_config_complain(r, r->line, "detector: the name of a [detector NAME] section is needed");
    else
      memcpy(f->detector, value, strlen(value) + 1);
  } else if (hk_field_set(&f->rule, name, value, error, sizeof error) != 0) {
    hk_config_complain(r, r->line, "%s", error);
  }
}

void hk_config_field_end(struct hk_config_reading *r)
{
  struct hk_config_field *f = field_section_last_of(r);
  char error[256];
  if (!hk_config_seen(r, "match"))
    hk_config_complain(r, r->section_line, "[field %s] needs match = GLOB, its sensors", f->name);
  if (!hk_config_seen(r, "operator"))
    hk_config_complain(r, r->section_line, "[field %s] needs operator = NAME, one of " HK_FIELD_OPERATORS, f->name);
  if (!hk_config_seen(r, "detector"))
    hk_config_complain(r, r->section_line,
                       "[field %s] needs detector = NAME, the [detector NAME] whose keys the derived series take", f->name);
  if (r->faults == r->faults_before && hk_field_check(&f->rule, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[field %s]: %s", f->name, error);
  f->rule.given = 0;
}

/* Adds a detector. NULL: the maximum is reached. */
static struct hk_config_detector *field_section_add(struct hk_config_reading *r, const struct hk_config_field *f)
{
  struct hk_config *c = r->config;
  if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
    hk_config_complain(r, 0, "more than %d detectors, including those of fields", HK_CONFIG_DETECTORS_MAX);
    return NULL;
  }
  struct hk_config_detector *d = &c->detectors[c->n_detectors];
  *d = (struct hk_config_detector){ .number = c->n_detectors++, .derived = true, .group = true, .field = true };
  memcpy(d->match, f->match, sizeof d->match);
  return d;
}

/* Adds the detectors of a field's derived sensors: copies of a section's. */
static bool add_residuals(struct hk_config_reading *r, struct hk_config_field *f)
{
  const struct hk_config *c = r->config;
  uint32_t from = 0;
  while (from < c->n_detectors && (c->detectors[from].derived || strcmp(c->detectors[from].name, f->detector) != 0))
    from++;
  if (from == c->n_detectors) {
    hk_config_complain(r, 0, "[field %s]: detector = %.32s: there is no such section", f->name, f->detector);
    return false;
  }
  for (uint32_t i = from; i == from || (c->detectors[i].derived && !c->detectors[i].group); i++) {
    struct hk_config_detector *d = field_section_add(r, f);
    if (!d)
      return false;
    const char *algorithm = i == from ? "" : strchr(c->detectors[i].name, HK_DERIVED_MARK) + 1;
    snprintf(d->name, sizeof d->name, "%.40s%c%s%s%.16s", f->name, HK_DERIVED_MARK, hk_field_operator_name(f->rule.kind),
             i == from ? "" : ".", algorithm);
    d->detector = c->detectors[i].detector;
    d->detector.rate = false; /* a field's input values are already rates, if that is required */
    d->residual = true;
    f->series[f->n_series++] = d->number;
  }
  return true;
}

void hk_config_add_fields(struct hk_config_reading *r)
{
  struct hk_config *c = r->config;
  char error[256];
  for (uint32_t i = 0; i < c->n_fields; i++) {
    struct hk_config_field *f = &c->fields[i];
    for (uint32_t k = 0; k < c->n_groups; k++)
      if (strcmp(c->groups[k].name, f->name) == 0)
        hk_config_complain(r, 0, "[field %s]: there is a group of that name; their series would have the same names", f->name);
    struct hk_config_detector *own = add_residuals(r, f) ? field_section_add(r, f) : NULL;
    if (!own)
      return;
    snprintf(own->name, sizeof own->name, "%c%.50s", HK_DERIVED_MARK, f->name);
    if (hk_detector_parse("window=4,gap=1,rank=1,krylov=2,products=2,stride=65536,alert=off", &own->detector, error,
                          sizeof error) != 0)
      hk_config_complain(r, 0, "[field %s]: %s", f->name, error);
  }
}

/* Whether a GPU may be asked to compute the models. */
static bool has_device(const struct hk_config *config)
{
  return config->backend != HK_BACKEND_CPU && config->backend != HK_BACKEND_REFERENCE;
}

/* The same as measure_row, of a process given as matrices. What a GPU computes is not measured: the processor may take minutes.
 */
static int measure_process(const struct hk_config *config, struct hk_config_field *f, char *error, size_t size)
{
  const struct hk_matrix_shape *shape = f->file.plan->matrix;
  const double interval = (double)f->rule.interval / 1e9;
  uint32_t singular = 0;
  f->row = 0;
  f->cost = (struct hk_matrix_cost){ 0 };
  if (has_device(config) && hk_matrix_is_wide(shape))
    return 0;
  const int status = hk_pipelines_matrix_measure(f->file.plan, interval, &f->cost, &singular);
  f->row = f->cost.row;
  if (status == -EDOM)
    snprintf(error, size, "%s: the equations have no steady state, or no next one: they are singular at unknown %u", f->rule.file,
             singular + 1);
  else if (status == -E2BIG)
    snprintf(error, size, "%s: the matrix has %u and %u diagonals beside the main one in the best order that was found: too many",
             f->rule.file, shape->below, shape->above);
  else if (status != 0)
    snprintf(error, size, "%s: %s", f->rule.file,
             status == -ENOMEM ? "out of memory" : "its equations cannot be solved in double precision: are its numbers right?");
  if (status != 0 || f->row <= interval / 2)
    return status;
  snprintf(
      error, size,
      "%s: a row of its %u unknowns takes %.3g s here, over half of interval = %.3g s: fewer or a longer interval are needed",
      f->rule.file, shape->n, f->row, interval);
  return -E2BIG;
}

/* Whether a field's rows are computed in time: a row of a model may take at most half of its interval, unless a GPU may
 * compute it. Returns 0, or a negative errno with a message. */
static int measure_row(const struct hk_config *config, struct hk_config_field *f, char *error, size_t size)
{
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  const double threads = config->threads > 0 ? config->threads : cores > 0 ? (double)cores : 1;
  const double interval = (double)f->rule.interval / 1e9;
  if (!f->file.plan)
    return 0;
  if (f->file.plan->matrix)
    return measure_process(config, f, error, size);
  const int status = hk_pipelines_measure(f->file.plan, interval, &f->row);
  if (status != 0) {
    snprintf(error, size, "%s: %s", f->rule.file,
             status == -ENOMEM  ? "out of memory"
             : status == -E2BIG ? "the network is too large for its solver"
                                : "its equations cannot be solved in double precision: are its numbers right?");
    return status;
  }
  f->row /= fmin(threads, f->file.plan->lines);
  if (f->row <= interval / 2 || (has_device(config) && !f->file.plan->heat && f->file.plan->lines >= HK_PIPELINES_DEVICE_LEAST))
    return 0;
  snprintf(
      error, size,
      "%s: a row of its %u cells takes %.3g s here, over half of interval = %.3g s: fewer cells or a longer interval are needed",
      f->rule.file, f->file.plan->cells, f->row, interval);
  return -E2BIG;
}

/* Whether the positions of a focus can be those of a line, by its keys; and how much memory it needs. Returns 0, or a negative
 * errno with a message. */
static int measure_line(struct hk_config_field *f, char *error, size_t size)
{
  const struct hk_focus_rule rule = hk_field_focus_rule(&f->rule);
  struct hk_focus_line *line;
  char why[192];
  if (f->rule.kind != HK_FIELD_FOCUS)
    return 0;
  const int status =
      hk_focus_new(&line, &rule, hk_field_graph_nodes(f->file.graph), hk_field_graph_positions(f->file.graph), why, sizeof why);
  if (status != 0) {
    snprintf(error, size, "%s: %s", f->rule.file, why);
    return status;
  }
  f->line = (struct hk_config_line){ hk_focus_bytes(line), hk_focus_delay(&line->f),
                                     line->lags / ((size_t)line->f.aims * line->f.n * line->f.places) };
  hk_focus_free(line);
  return 0;
}

int hk_config_read_graphs(struct hk_config *config, hk_config_fault *fault, void *arg)
{
  static const char *const key_of[] = {
    [HK_FIELD_RESIDUAL] = "neighbours", [HK_FIELD_MODEL] = "file", [HK_FIELD_FOCUS] = "positions", [HK_FIELD_KINDS - 1] = NULL
  };
  char error[HK_FIELD_FILE_MAX + 256], line[sizeof error + 128];
  int status = 0;
  for (uint32_t i = 0; i < config->n_fields; i++) {
    struct hk_config_field *f = &config->fields[i];
    int each = hk_field_file_read(&f->file, &f->rule, error, sizeof error);
    if (each == 0)
      each = measure_row(config, f, error, sizeof error);
    if (each == 0)
      each = measure_line(f, error, sizeof error);
    if (each == 0) {
      f->rule.mark = hk_field_file_mark(&f->file);
      continue;
    }
    snprintf(line, sizeof line, "[field %s]: %s: %s", f->name, key_of[f->rule.kind], error);
    fault(arg, line);
    status = each;
  }
  return status;
}
