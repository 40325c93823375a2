/* hankel sensors: lists sensors with their states. The daemon sends the list in parts; the command sorts it by name. */
#include "daemon/cli/commands.h"

#include "daemon/base/timestamp.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART 1000     /* sensors requested at a time */
#define GLOB_MOST 512 /* bytes of a glob that a daemon takes */

static const char sensors_help[] =
    "usage: hankel sensors [OPTION...] [GLOB]\n\n"
    "Lists sensors whose names match GLOB (* is any run of characters, ? one; default: all): state, last value,\n"
    "last score, threshold, and time of the last point; of a cluster over RabbitMQ those of all machines. Exits\n"
    "with 3 if one of these is away. States:\n\n"
    "  alert     has a standing alert: see hankel top, hankel tail --events\n"
    "  ok        is scored\n"
    "  warming   has too few points for its first score; N/M: N of M points\n"
    "  provisional\n"
    "            as warming; meanwhile a smaller window scores (provisional = yes)\n"
    "  gap       is scored, but raises no alert: over a tenth of the window was missing\n"
    "  stale     has sent no points for a while\n"
    "  waiting   has sent no point yet\n"
    "  unknown   no device is computing at the moment\n\n"
    "  --json             one JSON object a line for each sensor; PROTOCOL.md (SENSORS) describes it\n"
    "  --limit N          at most N sensors (default: all)\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel sensors\n"
    "  hankel sensors 'pump*temperature'\n"
    "  hankel sensors --json | grep '\"state\":\"stale\"'\n";

struct row {
  cJSON *sensor;
  char *text; /* the daemon's text, because cJSON does not keep all digits of a time */
};

struct list {
  struct row *row; /* each its own */
  size_t n, capacity;
  double count; /* sensors that there are */
  cJSON *away;  /* names of machines of a cluster whose sensors are missing; NULL: none */
};

static void free_list(struct list *l)
{
  for (size_t i = 0; i < l->n; i++) {
    cJSON_Delete(l->row[i].sensor);
    free(l->row[i].text);
  }
  free(l->row);
  cJSON_Delete(l->away);
}

static const char *sensors_text_of(const cJSON *object, const char *key)
{
  const cJSON *item = cJSON_GetObjectItem(object, key);
  return cJSON_IsString(item) ? item->valuestring : "";
}

/* Adds the sensor whose object begins at `text`. Returns the text after it; NULL: not a sensor, or no memory. */
static const char *take_one(struct list *l, const char *text)
{
  const char *end = NULL;
  if (l->n == l->capacity) {
    const size_t capacity = l->capacity > 0 ? 2 * l->capacity : PART;
    struct row *larger = realloc(l->row, capacity * sizeof *larger);
    if (!larger)
      return NULL;
    l->row = larger;
    l->capacity = capacity;
  }
  cJSON *sensor = cJSON_ParseWithOpts(text, &end, false);
  char *own = sensor ? strndup(text, (size_t)(end - text)) : NULL;
  if (!own) {
    cJSON_Delete(sensor);
    return NULL;
  }
  l->row[l->n++] = (struct row){ sensor, own };
  return end;
}

/* Takes the sensors from an answer, and the beginning of the next part (0: none). False: not an answer, or no memory. */
static bool sensors_take_part(struct list *l, const char *text, uint64_t *next)
{
  static const char head[] = "{\"sensors\":[";
  cJSON *part = cJSON_Parse(text);
  const cJSON *more = cJSON_GetObjectItem(part, "next"), *count = cJSON_GetObjectItem(part, "count");
  const bool good = cJSON_IsNumber(count) && strncmp(text, head, sizeof head - 1) == 0;
  const char *at = text + sizeof head - 1;
  *next = cJSON_IsNumber(more) ? (uint64_t)more->valuedouble : 0;
  if (good)
    l->count = count->valuedouble;
  if (cJSON_GetArraySize(cJSON_GetObjectItem(part, "away")) > 0) {
    cJSON_Delete(l->away);
    l->away = cJSON_DetachItemFromObject(part, "away");
  }
  cJSON_Delete(part);
  while (good && at && (*at == '{' || *at == ','))
    at = take_one(l, at + (*at == ','));
  return good && at;
}

/* An exit code. */
static int sensors_ask(hankel *h, char **argv, const char *address, const char *glob, uint64_t limit, struct list *l)
{
  uint64_t next = 0;
  do {
    char *text = NULL;
    const uint64_t left = limit - l->n;
    const int status = hankel_sensors(h, glob, left < PART ? (uint32_t)left : PART, next, &text, HK_LINK_WAIT);
    if (status == -EINVAL)
      return hk_usage(argv, "%s", hankel_error(h));
    if (status < 0) {
      const char *why = hk_link_error(h, address);
      return hk_failed(argv, "no list from the daemon at %s: %s%s", address, why,
                       strstr(why, hankel_error_name(HANKEL_BAD_TYPE)) ? "; its version is older than this request" : "");
    }
    const bool good = sensors_take_part(l, text, &next);
    free(text);
    if (!good)
      return hk_failed(argv, "the daemon's answer is not a list of sensors, or there is no memory for it");
  } while (next > 0 && l->n < limit);
  return HK_EXIT_DONE;
}

static int sensors_by_name(const void *left, const void *right)
{
  return strcmp(sensors_text_of(((const struct row *)left)->sensor, "name"),
                sensors_text_of(((const struct row *)right)->sensor, "name"));
}

/* Prints a number of the list; "-" if there is none. */
static void sensors_number_text(const cJSON *item, int digits, char *out, size_t size)
{
  if (cJSON_IsNumber(item))
    snprintf(out, size, "%.*g", digits, item->valuedouble);
  else
    snprintf(out, size, "-");
}

static void state_text(const cJSON *sensor, char *out, size_t size)
{
  const char *state = sensors_text_of(sensor, "state");
  const cJSON *samples = cJSON_GetObjectItem(sensor, "samples"), *first = cJSON_GetObjectItem(sensor, "first");
  const cJSON *of = cJSON_IsNumber(first) && strcmp(state, "warming") == 0 ? first : cJSON_GetObjectItem(sensor, "span");
  const bool raised = cJSON_IsTrue(cJSON_GetObjectItem(sensor, "alert"));
  if ((strcmp(state, "warming") == 0 || strcmp(state, "provisional") == 0) && cJSON_IsNumber(samples) && cJSON_IsNumber(of))
    snprintf(out, size, "%s %.0f/%.0f", state, samples->valuedouble, of->valuedouble);
  else
    snprintf(out, size, "%s%s", raised ? "alert" : state, raised && strcmp(state, "stale") == 0 ? " stale" : "");
}

/* Describes what the model of a line explains of a check. */
static void print_explained(const cJSON *share)
{
  if (cJSON_IsNumber(share) && share->valuedouble > 0)
    printf("  (its model explains %.1f %% of its variance)", 100 * share->valuedouble);
  else if (cJSON_IsNumber(share))
    printf("  (its model explains nothing of it)");
}

static void print_table(const struct list *l)
{
  printf("%-17s %12s %9s %9s  %-20s  %s\n", "state", "value", "score", "threshold", "last point", "sensor");
  for (size_t i = 0; i < l->n; i++) {
    const cJSON *sensor = l->row[i].sensor, *time = cJSON_GetObjectItem(sensor, "time");
    char state[48], value[48], score[48], threshold[48], last[HK_TIMESTAMP_SIZE] = "-";
    state_text(sensor, state, sizeof state);
    sensors_number_text(cJSON_GetObjectItem(sensor, "value"), 7, value, sizeof value);
    sensors_number_text(cJSON_GetObjectItem(sensor, "score"), 3, score, sizeof score);
    sensors_number_text(cJSON_GetObjectItem(cJSON_GetObjectItem(sensor, "threshold"), "value"), 4, threshold, sizeof threshold);
    if (cJSON_IsNumber(time))
      hk_timestamp_format((int64_t)(time->valuedouble / 1e9) * 1000000000, last); /* cJSON does not keep all digits */
    printf("%-17s %12s %9s %9s  %-20s  ", state, value, score, threshold, last);
    hk_print_name(stdout, sensors_text_of(sensor, "name"));
    print_explained(cJSON_GetObjectItem(sensor, "explained"));
    putchar('\n');
  }
}

/* Reports that a glob matches no name, and whether it would match within names. */
static int none_matches(hankel *h, char **argv, const char *address, const char *glob, double count)
{
  char wide[GLOB_MOST + 3], hint[GLOB_MOST + 300] = "";
  struct list l = { 0 };
  const int length =
      snprintf(wide, sizeof wide, "%s%s%s", glob[0] == '*' ? "" : "*", glob, glob[strlen(glob) - 1] == '*' ? "" : "*");
  if (length <= GLOB_MOST && strcmp(wide, glob) != 0 && sensors_ask(h, argv, address, wide, 1, &l) == 0 && l.n > 0)
    snprintf(hint, sizeof hint, "; '%s' matches %.200s", wide, sensors_text_of(l.row[0].sensor, "name"));
  free_list(&l);
  for (char *p = hint; *p; p++) /* names may hold anything */
    *p = (unsigned char)*p < ' ' || *p == 127 ? '?' : *p;
  return hk_failed(argv, "none of %.0f sensors has a name that matches %s%s", count, glob, hint);
}

/* Reports machines of a cluster that did not answer. */
static int sensors_missing(char **argv, const struct list *l)
{
  const cJSON *machine;
  cJSON_ArrayForEach(machine, l->away)
      fprintf(stderr, "hankel %s: %s is away, and its sensors are missing\n", argv[0], cJSON_GetStringValue(machine));
  return l->away ? HK_EXIT_WRONG : HK_EXIT_DONE;
}

static int sensors_show(char **argv, const struct list *l, bool json)
{
  if (l->n == 0)
    return hk_failed(argv, "there are no sensors yet: no points have arrived");
  qsort(l->row, l->n, sizeof *l->row, sensors_by_name);
  for (size_t i = 0; i < l->n && json; i++)
    puts(l->row[i].text);
  if (!json)
    print_table(l);
  return HK_EXIT_DONE;
}

int hk_command_sensors(int argc, char **argv)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },       { "limit", required_argument, NULL, 'l' },
    { "from", required_argument, NULL, 'f' }, HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },       { 0 },
  };
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  const char *address = HK_LINK_ADDRESS;
  uint64_t limit = UINT32_MAX;
  bool json = false;
  int option, code = 0;
  while (code == 0 && (option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == HK_OPTION_HELP) {
      fputs(sensors_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    }
    if (option == 'j')
      json = true;
    else if (option == 'f')
      address = optarg;
    else if (option == 'l')
      code = hk_option_whole(argv, "--limit", optarg, 1, UINT32_MAX, &limit);
    else
      code = hk_secure_take(&link.security, option, optarg);
  }
  if (code != 0)
    return code;
  if (argc - optind > 1)
    return hk_usage(argv, "at most one GLOB; put it in quotes, so that the shell does not expand it");
  const char *glob = optind < argc ? argv[optind] : "";
  struct list l = { 0 };
  hankel *h = NULL;
  link.once = 1;
  code = hk_link_open(&h, argv, address, &link);
  if (code != 0)
    return code;
  code = sensors_ask(h, argv, address, glob, limit, &l);
  if (code == 0 && l.n == 0 && l.count > 0)
    code = none_matches(h, argv, address, glob, l.count);
  else if (code == 0)
    code = sensors_show(argv, &l, json);
  if (sensors_missing(argv, &l) != HK_EXIT_DONE)
    code = HK_EXIT_WRONG;
  free_list(&l);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
