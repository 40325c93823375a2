/* Options, configuration, and the server's life. */
#include "daemon/server/program.h"
#include "cpu/field/field.h"
#include "cpu/field/filter.h"
#include "cpu/field/hoelder.h"
#include "cpu/model/pipelines_network.h"
#include "cpu/provisional/provisional.h"
#include "cpu/suggest.h"
#include "gpu/model/matrix_gpu.h"
#include "gpu/model/pipelines_gpu.h"

#include "daemon/base/address.h"
#include "daemon/base/uv_reserve.h"
#include "daemon/config/config_reader.h"
#include "daemon/intake/pictures.h"
#include "daemon/scoring/backend_none.h"
#include "daemon/sensors/detector_rules.h"
#include "daemon/server/lifecycle.h"
#include "daemon/server/server.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static const char help[] =
    "usage: hankeld -c FILE [--check]\n\n"
    "Watches sensors and publishes change-point scores and alerts.\n\n"
    "  -c, --config FILE  the configuration; hankeld.conf(5) describes it\n"
    "      --check        report faults of the configuration, or the memory of a sensor, and exit\n"
    "      --help         print this\n"
    "      --version      print the version\n\n"
    "Prints `listening PROTOCOL TRANSPORT ADDRESS:PORT` for each listener, then `ready`, on standard error.\n"
    "SIGTERM and SIGINT end it once all points that it has taken are scored; SIGHUP reloads the configuration.\n";

static void program_print_fault(void *arg, const char *message)
{
  (void)arg;
  fprintf(stderr, "%s\n", message);
}

/* Prints the memory of a sensor with its companions, the last of which is detector `last`. bytes: of all of them. */
static void program_print_together(const struct hk_config *config, uint32_t last, uint64_t bytes)
{
  uint32_t first = last;
  while (config->detectors[first].derived)
    first--;
  const uint32_t n = last - first + 1;
  uint64_t most = config->max_sensors / n;
  if (config->memory > 0 && config->memory / bytes < most)
    most = config->memory / bytes;
  printf("detector %s with its further algorithms: %llu bytes and %u of max_sensors a sensor; there is room for about %llu\n",
         config->detectors[first].name, (unsigned long long)bytes, n, (unsigned long long)most);
}

/* Prints the listeners, and whether sections replace the default ones. */
static void print_listeners(const struct hk_config *config)
{
  char address[HK_ADDRESS_MAX];
  for (uint32_t i = 0; i < config->n_listeners; i++) {
    const struct hk_config_listener *l = &config->listeners[i];
    hk_address_format((const struct sockaddr *)&l->address, address);
    printf("listener %s: %s over %s on %s\n", l->name, hk_protocol_name(l->protocol), hk_transport_name(l->transport), address);
  }
  if (!config->follows.listeners)
    puts("these are all: with a [listen NAME] section there are no default listeners");
}

/* Prints the size and cost of a model of heat lines. */
static void print_heat(const struct hk_config_field *f)
{
  const struct hk_model_plan *p = f->file.plan;
  printf("field %s: %s: %u heat lines, %u pipes, %u sensors, %u of them checks; %u unknowns, matrices of 1 + 1 + 1 diagonals, "
         "%.1f KiB\n",
         f->name, f->rule.file, p->lines, p->pipes, p->sensors, p->sensors - 2 * p->lines, hk_model_all_points(p),
         (double)hk_model_need(p) / 1024);
  printf("field %s: a row takes %.3g ms on this machine's processor, of interval = %.6g s\n", f->name, 1e3 * f->row,
         (double)f->rule.interval / 1e9);
}

/* Prints the size and cost of the model of a network. */
static void print_network(const struct hk_config_field *f)
{
  const struct hk_model_plan *p = f->file.plan;
  const double interval = (double)f->rule.interval / 1e9;
  struct hk_sparse_facts facts;
  if (hk_pipelines_facts(p, &facts) != 0)
    return; /* the row was measured with the same solver before */
  printf(
      "field %s: %s: a network of %u nodes, %u pipes, %u cells, %u sensors, %u of them checks; %u unknowns, solved by %s, whose "
      "factor has %llu numbers; %.1f KiB\n",
      f->name, f->rule.file, p->nodes, p->pipes, p->cells, p->sensors, p->sensors - p->boundaries, p->network->points,
      facts.solver, (unsigned long long)facts.numbers, (double)(hk_model_need(p)) / 1024);
  printf("field %s: a row takes %.3g ms on this machine's processor, %.2g %% of interval = %.6g s; a wave takes %.3g s from the "
         "pressures to the farthest node and back\n",
         f->name, 1e3 * f->row, 100 * f->row / interval, interval, p->line->transit);
  if (!hk_sparse_ldl)
    printf("field %s: this program was built without SuiteSparse, with which networks take a fraction of that\n", f->name);
}

/* Prints the size and cost of a process given as matrices. */
static void print_process(const struct hk_config_field *f)
{
  const struct hk_model_plan *p = f->file.plan;
  const struct hk_matrix_shape *s = p->matrix;
  const double interval = (double)f->rule.interval / 1e9;
  printf("field %s: %s: matrices of %u unknowns, %u numbers, %u and %u diagonals beside the main one once they are in order, %s; "
         "%u sensors, %u of them checks\n",
         f->name, f->rule.file, s->n, s->equations.at[s->n], s->below, s->above, s->symmetric ? "symmetric" : "not symmetric",
         p->sensors, p->sensors - p->boundaries);
  if (f->row > 0)
    printf(
        "field %s: %s on this machine's processor, %.1f MiB; a row takes %.3g ms, %.2g %% of interval = %.6g s; to begin takes "
        "%.3g ms; it forgets within %.3g s, and is silent for three times that\n",
        f->name, f->cost.solver, (double)hk_model_need(p) / 1048576, 1e3 * f->row, 100 * f->row / interval, interval,
        1e3 * f->cost.begin, f->cost.age);
  else
    printf("field %s: band LU on the GPU, with %.1f MiB of its memory; how long a row takes was not measured\n", f->name,
           (double)hk_matrix_gpu_bytes(p) / 1048576);
}

/* Prints the size and cost of a model. */
static void print_model(const struct hk_config_field *f)
{
  const struct hk_model_plan *p = f->file.plan;
  double transit = 0, shortest = INFINITY;
  for (uint32_t i = 0; i < p->lines; i++) {
    transit = fmax(transit, p->line[i].transit);
    shortest = fmin(shortest, p->line[i].shortest);
  }
  printf(
      "field %s: %s: %u lines, %u pipes, %u sensors, %u of them checks; %u unknowns, matrices of 2 + 1 + 2 diagonals, %.1f KiB\n",
      f->name, f->rule.file, p->lines, p->pipes, p->sensors, p->sensors - 2 * p->lines, 2 * hk_model_all_points(p),
      (double)hk_model_need(p) / 1024);
  if (p->lines >= HK_PIPELINES_DEVICE_LEAST)
    printf("field %s: with backend = cuda the GPU computes them, with %.1f MiB of its memory\n", f->name,
           (double)hk_pipelines_gpu_bytes(p) / 1048576);
  printf(
      "field %s: a row takes %.3g ms on this machine's processor, of interval = %.6g s; a wave takes %.3g s from end to end, and "
      "%.3g s through the shortest cell\n",
      f->name, 1e3 * f->row, (double)f->rule.interval / 1e9, transit, shortest);
}

/* Prints the size of a line of sensors, and how late it sees a change. */
static void print_line(const struct hk_config_field *f)
{
  const struct hk_focus_keys *k = &f->rule.focus;
  printf("field %s: %s has positions for %u sensors, %u places each; %zu sensors within reach of a place, on average; %.1f MiB\n",
         f->name, f->rule.file, hk_field_graph_nodes(f->file.graph), k->places, f->line.sensors, (double)f->line.bytes / 1048576);
  printf("field %s: an alert comes %.3g s after the change begins: twice the time that it takes to cross reach, and a block\n",
         f->name, f->line.delay * (double)f->rule.interval / 1e9);
}

/* Prints how many sensors the file of neighbours names, and how many of them lack neighbours. */
static void print_neighbours(const struct hk_config_field *f)
{
  const uint32_t n = hk_field_graph_nodes(f->file.graph), lonely = hk_field_graph_lonely(f->file.graph);
  if (n == 0)
    printf("field %s: %s names no sensors, so none has a residual\n", f->name, f->rule.file);
  else if (lonely == 0)
    printf("field %s: %s names %u sensors, each with 2 neighbours or more\n", f->name, f->rule.file, n);
  else
    printf("field %s: %s names %u sensors; %u of them with fewer than 2 neighbours, which have no residual\n", f->name,
           f->rule.file, n, lonely);
}

/* Prints the memory of each field, and what its file says. */
static void print_fields(const struct hk_config *config)
{
  for (uint32_t i = 0; i < config->n_fields; i++) {
    const struct hk_config_field *f = &config->fields[i];
    printf("field %s: %u series a member beside its own, of detector %s; %llu bytes a member beside these, in the daemon\n",
           f->name, f->n_series, f->detector, (unsigned long long)(hk_field_need(&f->rule, 4096) / 4096));
    if (hk_field_filters(&f->rule))
      printf("field %s: %s: the last %u values of a sensor, each at most as many times interval = %.6g s old\n", f->name,
             hk_field_operator_name(f->rule.kind), hk_field_filter_rule(&f->rule).samples, (double)f->rule.interval / 1e9);
    else if (hk_field_alone(&f->rule))
      printf(
          "field %s: %s: the exponent of the value %u rows before the newest, from the %u values around it, each at most as many "
          "times interval = %.6g s old\n",
          f->name, hk_field_operator_name(f->rule.kind), HK_HOELDER_REACH, HK_HOELDER_SAMPLES, (double)f->rule.interval / 1e9);
    if (f->rule.kind == HK_FIELD_ARMA)
      printf("field %s: arma: forecasts begin after two fits of %u exponents each\n", f->name, hk_field_arma_rows(&f->rule));
    if (f->rule.kind == HK_FIELD_FOCUS)
      print_line(f);
    else if (f->file.graph)
      print_neighbours(f);
    if (f->file.plan)
      (f->file.plan->matrix    ? print_process
       : f->file.plan->network ? print_network
       : f->file.plan->heat    ? print_heat
                               : print_model)(f);
  }
}

/* Prints what is made of each camera's pictures, and whether its tiles have a detector: tried by the name of a camera that the
 * glob matches. */
static void print_pictures(const struct hk_config *config)
{
  static const char *const subtracted[] = { [HK_PICTURE_BOX] = ", less the mean of the 15 x 15 around each",
                                            [HK_PICTURE_LAPLACIAN] = ", 4 times each less its four neighbours",
                                            [HK_PICTURE_NOTHING] = "" };
  struct hk_sections *sections = NULL;
  if (config->pictures.n > 0 && hk_sections_new(&sections, config) != 0)
    sections = NULL; /* no memory: without the second line */
  for (uint32_t i = 0; i < config->pictures.n; i++) {
    const struct hk_pictures_rule *p = &config->pictures.rule[i];
    char median[48] = "pixels as they come", words[64] = "", tile[sizeof p->match + 32];
    uint32_t n = 0;
    for (uint32_t k = 0; k < HK_PICTURE_STATISTICS; k++)
      if (p->statistics & 1u << k)
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s", n++ > 0 ? ", " : "", hk_picture_statistics[k]);
    if (p->of.median > 0)
      snprintf(median, sizeof median, "medians of %u x %u pixels", p->of.median, p->of.median);
    printf("pictures %s: %s%s, in tiles of %u x %u; %u series a tile (%s); 640 x 480 pixels make %u series of at most %u\n",
           p->name, median, subtracted[p->of.subtract], p->of.tile, p->of.tile, n, words,
           n * hk_picture_tiles_over(480, p->of.tile) * hk_picture_tiles_over(640, p->of.tile), HK_PICTURE_POINTS);
    snprintf(tile, sizeof tile, "%s/0,0/%.*s", p->match, (int)strcspn(words, ","), words);
    for (char *c = tile; *c; c++)
      *c = *c == '*' || *c == '?' ? 'x' : *c;
    if (sections && !hk_sections_find(sections, tile, strlen(tile)))
      printf("pictures %s: no [detector NAME] matches a tile such as %s: it will not be scored\n", p->name, tile);
  }
  hk_sections_release(sections);
}

/* Prints the daemon's role in a cluster. */
static void print_cluster(const struct hk_cluster_rule *r)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->partitions; i++)
    n += hk_cluster_reads(r, i);
  if (r->engine == HK_CLUSTER_KAFKA && r->role != HK_CLUSTER_NONE)
    printf("cluster %s: engine = kafka is experimental: it was tested against the mock brokers of librdkafka only\n", r->name);
  if (r->role == HK_CLUSTER_GATEWAY)
    printf("cluster %s: a gateway to %u partitions; it scores nothing, and sensors take no memory of a device\n", r->name, n);
  else if (r->state[0])
    printf("cluster %s: %s; the broker shares %u partitions out, and the state of their sensors is kept in %s\n", r->name,
           r->role == HK_CLUSTER_ALL ? "a gateway and a scorer" : "a scorer", r->partitions, r->state);
  else if (r->role == HK_CLUSTER_SCORER)
    printf("cluster %s: a scorer of %u of %u partitions\n", r->name, n, r->partitions);
}

/* Prints what the sensors of a detector take: bytes of one, and of max_sensors. */
static void print_memory(const struct hk_config *config, uint32_t i, uint64_t one, uint64_t all, const char *backend)
{
  const struct hk_config_detector *d = &config->detectors[i];
  printf("detector %s: %llu bytes a sensor on the %s backend, %.1f MiB for max_sensors = %u", d->name, (unsigned long long)one,
         backend, (double)all / (1 << 20), config->max_sensors);
  if (config->memory > 0 && all > config->memory)
    printf("; memory = %.1f MiB is enough for about %llu of them", (double)config->memory / (1 << 20),
           (unsigned long long)(config->memory / one));
  if (d->detector.provisional)
    printf("; provisional scores from point %d on, %zu bytes more until the window is full", HK_PROVISIONAL_FIRST,
           hk_provisional_bytes());
  putchar('\n');
}

/* Prints a state folder that is given for nothing. */
static void print_unused(const struct hk_config *config)
{
  if (config->durability == HK_DURABILITY_NONE && config->state[0] && !getenv("STATE_DIRECTORY")) /* a unit may always set it */
    printf("state = %s is not used: durability = none keeps nothing\n", config->state);
}

/* Prints which certificates, and lists of revoked ones, have expired or soon will. */
static void print_gates(struct hk_gates *gates)
{
  char line[512];
  for (uint32_t i = 0; i < gates->n; i++) {
    if (hk_gate_expires(&gates->gate[i], line, sizeof line))
      puts(line);
    if (hk_gate_crl_expired(&gates->gate[i], line, sizeof line))
      puts(line);
  }
}

/* Prints the memory of each detector's sensors. Asks the backend, so that the figure is exact. */
static int program_check(const struct hk_config *config, const struct hk_backend_kind *kinds, const char *path)
{
  struct hk_device *device;
  char error[512], excuse[256];
  struct hk_config small = *config;
  small.max_sensors = 1; /* it is only queried */
  small.threads = 1;
  if (small.cluster.role == HK_CLUSTER_GATEWAY)
    kinds = hk_backend_kinds_none;
  if (hk_device_choose(&device, kinds, &small, &(struct hk_device_place){ .of = 1 }, excuse, sizeof excuse, error,
                       sizeof error) != 0) {
    fprintf(stderr, "%s: %s\n", path, error);
    return FAILED;
  }
  struct hk_backend *backend = device->backend;
  struct hk_gates gates = { 0 };
  const bool readable = hk_gates_open(&gates, config, NULL, error, sizeof error) == 0;
  if (readable) {
    printf("%s: ok\n", path);
    print_listeners(config);
    print_gates(&gates);
    print_unused(config);
  } else {
    fprintf(stderr, "%s: %s\n", path, error);
  }
  hk_gates_close(&gates);
  if (!readable) {
    hk_device_close(device);
    return FAILED;
  }
  uint64_t with = 0; /* bytes of a sensor and its companions so far */
  print_cluster(&config->cluster);
  if (config->cluster.role == HK_CLUSTER_GATEWAY) {
    hk_device_close(device);
    return DONE;
  }
  if (hk_config_scores(config) > 0)
    printf("scores: %.1f MiB of past scores, for HTTP\n", (double)hk_config_scores(config) / (1 << 20));
  if (excuse[0])
    printf("backend = auto: scoring on the CPU, not on the GPU: %s\n", excuse);
  for (uint32_t i = 0; i < config->n_detectors && !config->detectors[i].group; i++) {
    const uint64_t all = backend->ops->need(backend, i, config->max_sensors), one = all / config->max_sensors;
    with = config->detectors[i].derived ? with + one : one;
    print_memory(config, i, one, all, backend->ops->name);
    const bool last = i + 1 == config->n_detectors || !config->detectors[i + 1].derived || config->detectors[i + 1].group;
    if (last && config->detectors[i].derived)
      program_print_together(config, i, with);
    if (hk_sections_unreached(config, i, error, sizeof error))
      puts(error);
  }
  print_fields(config);
  print_pictures(config);
  const bool several = config->devices != 1 && (config->backend == HK_BACKEND_AUTO || config->backend == HK_BACKEND_CUDA);
  for (uint32_t at = 0; several && hk_sections_share(config, &at, error, sizeof error);)
    puts(error);
  for (uint32_t at = 0; hk_mqtt_rules_meet(&config->mqtt, &at, error, sizeof error);)
    puts(error);
  hk_device_close(device);
  return DONE;
}

static int serve(const struct hk_config *config, const struct hk_backend_kind *kinds, const char *path)
{
  char error[512];
  struct hk_server *server = calloc(1, sizeof *server);
  if (!server) {
    fprintf(stderr, "hankeld: no memory to start\n");
    return FAILED;
  }
  int result = FAILED;
  server->reload.path = path;
  if (hk_server_open(server, config, kinds, error, sizeof error) == 0) {
    result = hk_server_run(server) == 0 ? DONE : FAILED;
  } else {
    hk_log(&server->log, HK_LOG_ERROR, "%s", error);
  }
  if (!hk_server_close(server))
    _exit(result);
  free(server);
  return result;
}

enum { OPTION_CHECK = 256, OPTION_HELP, OPTION_VERSION };

/* Reports a word that getopt_long did not take; option: what that returned. */
static int program_wrong_option(const char *word, int option)
{
  const bool lacks = option == ':', has = !lacks && optopt >= OPTION_CHECK;
  char text[256];
  snprintf(text, sizeof text, "hankeld: %.80s: %s", word,
           lacks ? "a FILE is missing"
           : has ? "takes no value"
                 : "no such option, or not a clear one");
  if (!lacks && !has)
    hk_suggest_of(word, "--config, --check, --help, --version", text, sizeof text);
  fprintf(stderr, "%s (see hankeld --help)\n", text);
  return USAGE;
}

int hk_program(int argc, char **argv, const struct hk_backend_kind *kinds)
{
  static const struct option options[] = { { "config", required_argument, NULL, 'c' },
                                           { "check", no_argument, NULL, OPTION_CHECK },
                                           { "help", no_argument, NULL, OPTION_HELP },
                                           { "version", no_argument, NULL, OPTION_VERSION },
                                           { NULL, 0, NULL, 0 } };
  const char *path = NULL;
  bool only_check = false;
  int option, at = optind; /* of the word, which getopt_long passes only after its last letter */
  for (; (option = getopt_long(argc, argv, "+:c:", options, NULL)) != -1; at = optind) {
    switch (option) {
    case 'c':
      path = optarg;
      break;
    case OPTION_CHECK:
      only_check = true;
      break;
    case OPTION_HELP:
      fputs(help, stdout);
      return DONE;
    case OPTION_VERSION:
      puts("hankeld " HANKELD_VERSION);
      return DONE;
    default:
      return program_wrong_option(argv[at], option);
    }
  }
  if (optind < argc) {
    fprintf(stderr, "hankeld: %s: unexpected argument (see hankeld --help)\n", argv[optind]);
    return USAGE;
  }
  if (!path) {
    fprintf(stderr, "hankeld: a configuration is needed: hankeld -c FILE\n");
    return USAGE;
  }
  struct hk_config config;
  if (hk_reserve_memory() != 0)
    return FAILED;
  if (hk_config_load(&config, path, HK_CONFIG_PIPE, program_print_fault, NULL) != 0)
    return FAILED;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* at RLIMIT_FSIZE a write then returns EFBIG, like a full disk */
  const int result = only_check ? program_check(&config, kinds, path) : serve(&config, kinds, path);
  hk_config_free(&config);
  return result;
}
