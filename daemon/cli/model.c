/* hankel model: simulates recordings of a line of pipes, and fits models to recordings, without a daemon. */
#include "cpu/duration.h"
#include "daemon/base/timestamp.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/csv_input.h"
#include "daemon/cli/model_fit.h"
#include "daemon/cli/options.h"
#include "daemon/cli/pipe_simulation.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char model_help[] =
    "usage: hankel model simulate [OPTION...] FILE.model\n"
    "       hankel model fit [OPTION...] FILE.model RECORDING...     (hankel model fit --help)\n\n"
    "Simulates a line or network of pipes whose pumps and valves are moved now and then, a heat line whose flow\n"
    "and first temperature change, or a process given as matrices whose boundaries change. Writes the sensors'\n"
    "readings as CSV for hankel feed and hankel replay.\n"
    "FILE.model is that of [field NAME] with operator = model: see hankeld-model(7). Real lines are worse than\n"
    "simulated ones.\n\n"
    "  --hours H          length of the recording (default 24)\n"
    "  --interval D       time between readings (default 1s)\n"
    "  --from DATE        date of the first reading (default 2026-01-01)\n"
    "  --seed N           seed of the random numbers (default 1)\n"
    "  --velocity V       initial velocity in the first pipe, m/s (default 1); of a network, in the narrowest pipe\n"
    "                     at each node whose flow is a boundary\n"
    "  --level V          of matrices: what boundaries read at first, on the average (default 100)\n"
    "  --noise SHARE      standard deviation of a sensor, as a share of its first reading (default 0.0005)\n"
    "  --moves D          average time between two moves of pump or valve (default 40m; 0: none)\n"
    "  --unmetered SHARE  of a network: standard deviation of each `demand` of the file, as a share of it\n"
    "                     (default 0.05)\n"
    "  --friction X       friction of the pipes, loss of heat, or the matrix of the equations, as a multiple of the\n"
    "                     file's, so that the model is slightly wrong (default 1.03)\n"
    "  --wave X           wave speed, as a multiple of the file's (default 1)\n"
    "  --finer N          number of cells that replace one of the file's, or of steps an interval (default 2)\n"
    "  --leak AT,SHARE[,PLACE[,FOR[,LINE]]]  leak of this share of the flow, PLACE metres from the first node\n"
    "                                        (default: the middle), for the time FOR (default: to the end); AT:\n"
    "                                        time after the first reading. Of a heat line: heat lost there, as\n"
    "                                        a share of the whole line's loss. LINE: the line's name, if the\n"
    "                                        file has several. Of a network PLACE is needed: a node, or A:B for\n"
    "                                        the middle of the pipe between two; of matrices an unknown: its\n"
    "                                        equation loses that share of its own number times the unknown\n"
    "  --fault AT,SENSOR,KIND[,SIZE[,FOR]]   a sensor fails; KIND: bias (by SIZE, in its unit), drift (by SIZE an\n"
    "                                        hour), frozen, gap\n"
    "                     --leak and --fault may be given up to 16 times\n\n"
    "example:\n"
    "  hankel model simulate --interval 10s --leak 12h,0.01,40000 trunk.model >trunk.csv\n";

#define PARTS 5

struct settings {
  struct hk_simulation_rule rule;
  double hours;
  int64_t from, interval; /* ns */
  const char *leak[HK_SIMULATED_MAX], *fault[HK_SIMULATED_MAX];
};

/* Cuts a text at its commas. Returns the number of parts; PARTS + 1: too many, or too long. */
static uint32_t model_cut(const char *text, char copy[256], char *part[PARTS])
{
  char *rest = copy, *token;
  uint32_t n = 0;
  if (strlen(text) > 255)
    return PARTS + 1;
  memcpy(copy, text, strlen(text) + 1);
  while ((token = strsep(&rest, ","))) {
    if (n == PARTS)
      return PARTS + 1;
    part[n++] = token;
  }
  return n;
}

/* Reads seconds of the recording, which may be 0. */
static int take_span(char **argv, const char *option, const char *text, double *out)
{
  int64_t ns = 0;
  if (strcmp(text, "0") != 0 && hk_duration_parse(text, &ns) != 0)
    return hk_usage(argv, "%s: %s: not a duration such as 90s or 12h", option, text);
  *out = (double)ns / 1e9;
  return 0;
}

/* Sets a span from `at` on, whose length is an optional part. */
static int take_times(char **argv, const char *option, const char *at, const char *span, double *begin, double *end)
{
  double whole = INFINITY;
  int status = take_span(argv, option, at, begin);
  if (status == 0 && span)
    status = take_span(argv, option, span, &whole);
  *end = *begin + whole;
  return status;
}

/* The line of a leak by its name; a file with one line needs none. */
static int model_take_line(char **argv, const struct hk_model_plan *plan, const char *text, const char *name, uint32_t *out)
{
  for (*out = 0; *out < plan->lines; ++*out) {
    const struct hk_model_word *is = &plan->line[*out].name;
    if (name ? is->length == strlen(name) && memcmp(is->text, name, is->length) == 0 : plan->lines == 1)
      return 0;
  }
  return name ? hk_usage(argv, "--leak: %s: the model has no such line", name)
              : hk_usage(argv, "--leak %s: want AT,SHARE,PLACE,FOR,LINE, since the model has %u lines", text, plan->lines);
}

static bool model_is_named(const struct hk_model_word *is, const char *name, size_t length)
{
  return is->length == length && memcmp(is->text, name, length) == 0;
}

/* The place of a leak in a process given as matrices. */
static int take_unknown(char **argv, const char *text, const struct hk_model_plan *plan, const char *place,
                        struct hk_simulated_leak *out)
{
  uint64_t unknown = 0;
  if (!place || !place[0])
    return hk_usage(argv, "--leak %s: want AT,SHARE,UNKNOWN, a number from 1 to %u", text, plan->matrix->n);
  const int status = hk_option_whole(argv, "--leak: UNKNOWN", place, 1, plan->matrix->n, &unknown);
  if (status != 0)
    return status;
  out->node = (uint32_t)unknown - 1;
  if (plan->matrix->given[out->node])
    return hk_usage(argv, "--leak %s: a boundary gives unknown %s, from which nothing can leak", text, place);
  if (hk_market_place(&plan->matrix->equations, out->node, out->node) == UINT32_MAX)
    return hk_usage(argv, "--leak %s: equation %s has no number on the diagonal, a share of which could leak", text, place);
  return 0;
}

/* The place of a leak in a network. */
static int take_node(char **argv, const char *text, const struct hk_model_plan *plan, const char *place,
                     struct hk_simulated_leak *out)
{
  const char *colon = place ? strchr(place, ':') : NULL;
  if (!place || !place[0])
    return hk_usage(argv, "--leak %s: want AT,SHARE,PLACE, a node of the network, or A:B, a pipe between two", text);
  out->pipe = HK_MODEL_NONE;
  for (out->node = 0; out->node < plan->nodes; out->node++)
    if (model_is_named(&plan->node[out->node], place, strlen(place)))
      return 0;
  for (out->pipe = 0; colon && out->pipe < plan->pipes; out->pipe++) {
    const struct hk_model_pipe *p = &plan->pipe[out->pipe];
    const size_t first = (size_t)(colon - place), second = strlen(colon + 1);
    if ((model_is_named(&p->from, place, first) && model_is_named(&p->to, colon + 1, second)) ||
        (model_is_named(&p->to, place, first) && model_is_named(&p->from, colon + 1, second)))
      return 0;
  }
  return hk_usage(argv, "--leak: %s: the network has no such %s", place, colon ? "pipe" : "node");
}

static int take_leak(char **argv, const char *text, const struct hk_model_plan *plan, struct hk_simulated_leak *out)
{
  char copy[256], *part[PARTS];
  const uint32_t n = model_cut(text, copy, part);
  double length = 0;
  *out = (struct hk_simulated_leak){ .place = 0 };
  if (n < 2 || n > 5)
    return hk_usage(argv, "--leak %s: want AT,SHARE[,PLACE[,FOR[,LINE]]]", text);
  int status = model_take_line(argv, plan, text, n > 4 ? part[4] : NULL, &out->line);
  if (status == 0)
    status = take_times(argv, "--leak", part[0], n > 3 && part[3][0] ? part[3] : NULL, &out->begin, &out->end);
  if (status == 0)
    status = hk_option_real(argv, "--leak: SHARE", part[1], 0, 1, &out->share);
  if (status != 0)
    return status;
  if (plan->matrix)
    return take_unknown(argv, text, plan, n > 2 ? part[2] : NULL, out);
  if (plan->network)
    return take_node(argv, text, plan, n > 2 ? part[2] : NULL, out);
  for (uint32_t i = 0; i < plan->line[out->line].pipes; i++)
    length += plan->pipe[plan->line[out->line].pipe + i].length;
  out->place = length / 2;
  return n > 2 && part[2][0] ? hk_option_real(argv, "--leak: PLACE", part[2], 0, length, &out->place) : 0;
}

static int take_fault(char **argv, const char *text, const struct hk_model_plan *plan, struct hk_simulated_bad_sensor *out)
{
  static const char *const kinds[] = { "bias", "drift", "frozen", "gap", NULL };
  char copy[256], *part[PARTS];
  const uint32_t n = model_cut(text, copy, part);
  int kind = 0;
  *out = (struct hk_simulated_bad_sensor){ 0 };
  if (n < 3 || n > 5)
    return hk_usage(argv, "--fault %s: want AT,SENSOR,KIND[,SIZE[,FOR]]", text);
  int status = take_times(argv, "--fault", part[0], n > 4 ? part[4] : NULL, &out->begin, &out->end);
  if (status == 0 && (out->sensor = hk_model_plan_find(plan, part[1], strlen(part[1]))) == HK_MODEL_NONE)
    status = hk_usage(argv, "--fault: %s: the model has no such sensor", part[1]);
  if (status == 0)
    status = hk_option_word(argv, "--fault: KIND", part[2], kinds, &kind);
  out->fault = (enum hk_simulated_fault)kind;
  if (status == 0 && n < 4 && (out->fault == HK_FAULT_BIAS || out->fault == HK_FAULT_DRIFT))
    status = hk_usage(argv, "--fault %s: want a SIZE", text);
  if (status == 0 && n > 3 && part[3][0] != 0)
    status = hk_option_real(argv, "--fault: SIZE", part[3], -1e12, 1e12, &out->size);
  return status;
}

static int take_option(char **argv, struct settings *s, int option)
{
  struct hk_simulation_rule *r = &s->rule;
  uint64_t whole = 0;
  int status = 0;
  switch (option) {
  case 'H':
    return hk_option_real(argv, "--hours", optarg, 0, 1e6, &s->hours);
  case 'i':
    if (hk_duration_parse(optarg, &s->interval) != 0 || s->interval < 1000000 || s->interval > 3600000000000)
      return hk_usage(argv, "--interval %s: not a duration from 1ms to 1h", optarg);
    return 0;
  case 'f':
    if (hk_timestamp_parse_date(optarg, &s->from) != 0)
      return hk_usage(argv, "--from %s: not a date such as 2026-01-01 or 2026-01-01T12:00:00Z", optarg);
    return 0;
  case 's':
    return hk_option_whole(argv, "--seed", optarg, 0, (1ull << 48) - 1, &r->seed);
  case 'v':
    return hk_option_real(argv, "--velocity", optarg, 0.01, 20, &r->velocity);
  case 'L':
    return hk_option_real(argv, "--level", optarg, -1e12, 1e12, &r->level);
  case 'n':
    return hk_option_real(argv, "--noise", optarg, 0, 1, &r->noise);
  case 'u':
    return hk_option_real(argv, "--unmetered", optarg, 0, 1, &r->unmetered);
  case 'm':
    return take_span(argv, "--moves", optarg, &r->moves);
  case 'x':
    return hk_option_real(argv, "--friction", optarg, 0.1, 10, &r->friction);
  case 'w':
    return hk_option_real(argv, "--wave", optarg, 0.2, 5, &r->wave);
  case 'N':
    status = hk_option_whole(argv, "--finer", optarg, 1, 64, &whole);
    r->finer = (uint32_t)whole;
    return status;
  default:
    if (option == 'l' ? r->leaks == HK_SIMULATED_MAX : r->faults == HK_SIMULATED_MAX)
      return hk_usage(argv, "--%s: at most %d", option == 'l' ? "leak" : "fault", HK_SIMULATED_MAX);
    if (option == 'l')
      s->leak[r->leaks++] = optarg;
    else
      s->fault[r->faults++] = optarg;
    return 0;
  }
}

static int take_plan(char **argv, struct settings *s, const struct hk_model_plan *plan)
{
  int status = 0;
  for (uint32_t i = 0; i < s->rule.leaks && status == 0; i++)
    status = take_leak(argv, s->leak[i], plan, &s->rule.leak[i]);
  for (uint32_t i = 0; i < s->rule.faults && status == 0; i++)
    status = take_fault(argv, s->fault[i], plan, &s->rule.bad[i]);
  s->rule.interval = (double)s->interval / 1e9;
  return status;
}

static void model_print_time(int64_t ns)
{
  const time_t seconds = ns / 1000000000;
  const long rest = (long)(ns % 1000000000);
  struct tm at;
  char text[32];
  gmtime_r(&seconds, &at);
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &at);
  if (rest == 0)
    printf("%sZ", text);
  else
    printf("%s.%09ldZ", text, rest);
}

/* simulation: one for each line, which reads its own sensors. */
static int print_rows(char **argv, struct hk_simulation *const *simulation, const struct settings *s,
                      const struct hk_model_plan *plan)
{
  double *value = calloc(plan->sensors, sizeof *value);
  const uint64_t rows = (uint64_t)(s->hours * 3600 / s->rule.interval);
  int status = value ? 0 : -ENOMEM;
  for (uint64_t k = 0; k < rows && status == 0 && !ferror(stdout); k++) {
    for (uint32_t i = 0; i < plan->lines && status == 0; i++)
      status = hk_simulation_read(simulation[i], value);
    if (status != 0)
      break;
    model_print_time(s->from + (int64_t)k * s->interval);
    for (uint32_t i = 0; i < plan->sensors; i++)
      if (isnan(value[i]))
        printf(",");
      else
        printf(",%.9g", value[i]);
    printf("\n");
  }
  free(value);
  if (status == -ENOMEM)
    return hk_failed(argv, "out of memory");
  return status == 0 ? HK_EXIT_DONE
                     : hk_failed(argv, "it cannot be solved any more: its pipes, matrices or boundaries are too extreme");
}

/* Begins the simulation of each line, each with its own random numbers. */
static int model_open_all(char **argv, const struct settings *s, const char *path, const struct hk_model_plan *plan,
                          struct hk_simulation **simulation)
{
  for (uint32_t i = 0; i < plan->lines; i++) {
    struct hk_simulation_rule rule = s->rule;
    rule.line = i;
    rule.seed = (rule.seed + i) & ((1ull << 48) - 1);
    const int status = hk_simulation_open(&simulation[i], plan, &rule);
    if (status == -ENOMEM)
      return hk_failed(argv, "out of memory");
    if (status != 0 && plan->matrix)
      return hk_failed(argv, "%s: the process has no steady state", path);
    if (status != 0)
      return hk_failed(argv, "%s: the line or network %.*s has no steady state at %g m/s", path, (int)plan->line[i].name.length,
                       plan->line[i].name.text ? plan->line[i].name.text : "", s->rule.velocity);
  }
  return 0;
}

static int simulate(char **argv, struct settings *s, const char *path)
{
  const struct hk_model_plan *plan;
  char error[1024];
  if (hk_model_plan_read(&plan, path, error, sizeof error) != 0)
    return hk_failed(argv, "%s", error);
  struct hk_simulation **simulation = calloc(plan->lines, sizeof *simulation);
  int status = simulation ? take_plan(argv, s, plan) : hk_failed(argv, "out of memory");
  if (status == 0)
    status = model_open_all(argv, s, path, plan, simulation);
  if (status == 0) {
    printf("time");
    for (uint32_t i = 0; i < plan->sensors; i++)
      printf(",%.*s", (int)plan->sensor[i].name.length, plan->sensor[i].name.text);
    printf("\n");
    status = print_rows(argv, simulation, s, plan);
  }
  for (uint32_t i = 0; simulation && i < plan->lines; i++)
    hk_simulation_close(simulation[i]);
  free(simulation);
  hk_model_plan_release(plan);
  return hk_finish_output(argv, status);
}

int hk_command_model(int argc, char **argv)
{
  static const struct option options[] = {
    { "hours", required_argument, NULL, 'H' },    { "interval", required_argument, NULL, 'i' },
    { "from", required_argument, NULL, 'f' },     { "seed", required_argument, NULL, 's' },
    { "velocity", required_argument, NULL, 'v' }, { "level", required_argument, NULL, 'L' },
    { "noise", required_argument, NULL, 'n' },    { "moves", required_argument, NULL, 'm' },
    { "friction", required_argument, NULL, 'x' }, { "wave", required_argument, NULL, 'w' },
    { "finer", required_argument, NULL, 'N' },    { "unmetered", required_argument, NULL, 'u' },
    { "leak", required_argument, NULL, 'l' },     { "fault", required_argument, NULL, 'b' },
    { "help", no_argument, NULL, 'h' },           { 0 },
  };
  if (argc > 1 && strcmp(argv[1], "fit") == 0)
    return hk_model_fit(argc, argv);
  struct settings s = { .rule = hk_simulation_default(), .hours = 24, .interval = 1000000000, .from = 1767225600000000000 };
  int option, status = 0;
  while (status == 0 && (option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == HK_OPTION_HELP) {
      fputs(model_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    }
    status = option == HK_OPTION_WRONG ? HK_EXIT_USAGE : take_option(argv, &s, option);
  }
  if (status != 0)
    return status;
  static const char *const words[] = { "simulate", "fit", NULL };
  int word;
  if (hk_option_subcommand(argc, argv, words, &word) != 0)
    return HK_EXIT_USAGE;
  if (word == 1)
    return hk_usage(argv, "fit comes before its options");
  if (argc - optind != 2)
    return hk_usage(argv, "want simulate FILE.model");
  return simulate(argv, &s, argv[optind + 1]);
}
