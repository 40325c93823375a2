/* hankel tail: shows results and events as the daemon publishes them, until it is interrupted.
 *
 * When the connection breaks the library connects again and subscribes again, behind the last event that was shown; after
 * HK_LINK_PATIENCE without a daemon the command gives up with exit code 1, or never. SIGINT ends it with 0, once what was begun
 * is printed whole; a second one kills. */
#include "cpu/monotonic.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 200 /* ms: how long one waiting call to the library lasts */

static const char tail_help[] =
    "usage: hankel tail [OPTION...]\n\n"
    "Shows scores and events as the daemon publishes them, until interrupted.\n\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n"
    "  --match GLOB       only sensors whose name matches: * any characters, ? one character\n"
    "  --min-score Z      only results with a score of at least Z (0 to 1); without it all results\n"
    "  --events           only events (alerts raised, corrected, cleared) and notices (sensor silent, back)\n"
    "  --incidents        only incidents; with --events both, and each event some seconds later\n"
    "  --since POSITION   first the logged events after this position (0: all); shows positions\n"
    "  --forever          wait without limit for an unreachable daemon\n"
    "  --format NAME      text (default), jsonl, or csv: sensor,time,score,state\n" HK_SECURE_HELP "\n"
    "If the daemon becomes unreachable, tail waits up to 10 seconds, then exits with 1.\n\n"
    "examples:\n"
    "  hankel tail --events\n"
    "  hankel tail --incidents\n"
    "  hankel tail --events --since 1207 --forever --format jsonl >>events\n"
    "  hankel tail --match 'plant1*' --min-score 0.5 --format jsonl\n";

/* A signal handler can reach nothing else. (A signalfd would need the signal blocked in every thread, and the BLAS library
 * has started its own before main.) */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
  (void)signal;
  interrupted = 1;
}

struct tail {
  char **argv;
  enum hk_format format;
  bool positions, forever;
  uint64_t position; /* where there are such: of the last event that is known */
  int64_t lost;      /* ns, hk_monotonic: since when there is no connection; 0 = there is one */
};

static void on_scores(void *arg, const struct hankel_scores *scores)
{
  const struct tail *tail = arg;
  for (uint32_t i = 0; i < scores->n; i++) {
    const struct hk_shown_result result = { scores->name[i],       scores->time[i],
                                            scores->value != NULL, scores->value ? scores->value[i] : 0,
                                            scores->score[i],      scores->state[i] };
    hk_print_result(stdout, tail->format, &result, NULL, 0);
  }
}

static void tail_on_event(void *arg, const struct hankel_event *event)
{
  struct tail *tail = arg;
  struct hankel_event shown = *event;
  if (!tail->positions)
    shown.position = 0;
  else if (shown.position > 0)
    tail->position = shown.position;
  hk_print_event(stdout, tail->format, &shown);
}

static void on_incident(void *arg, const struct hankel_incident *incident)
{
  struct tail *tail = arg;
  struct hankel_incident shown = *incident;
  if (!tail->positions)
    shown.position = 0;
  else if (shown.position > 0)
    tail->position = shown.position;
  hk_print_incident(stdout, tail->format, &shown);
}

static void on_gap(void *arg, uint64_t results, uint64_t events)
{
  const struct tail *tail = arg;
  if (tail->format == HK_FORMAT_JSONL)
    printf("{\"gap\":{\"results\":%" PRIu64 ",\"events\":%" PRIu64 "}}\n", results, events);
  else if (tail->format == HK_FORMAT_CSV)
    printf("#gap,%" PRIu64 ",%" PRIu64 "\n", results, events);
  if (events >= HANKEL_NOBODY_KNOWS)
    hk_failed(tail->argv,
              "position %" PRIu64 " lies beyond the end of the daemon's event log, which is not the one it came from: how "
              "many are missing is unknown, and events from now on follow",
              tail->position);
  else if (tail->positions && events > 0)
    hk_failed(tail->argv,
              "%" PRIu64 " results and %" PRIu64
              " events are missing here: they were read too slowly, or the daemon's event log no longer has them",
              results, events);
  else
    hk_failed(tail->argv, "read too slowly: %" PRIu64 " results and %" PRIu64 " events are missing here", results, events);
}

static void tail_on_connected(void *arg, const char *server)
{
  struct tail *tail = arg;
  (void)server;
  if (tail->lost)
    hk_failed(tail->argv, "connected again");
  tail->lost = 0;
}

static void tail_on_disconnected(void *arg, uint64_t in_doubt, const char *reason)
{
  struct tail *tail = arg;
  (void)in_doubt;
  if (!tail->lost) {
    tail->lost = hk_monotonic();
    hk_failed(tail->argv, "the connection is lost: %s; trying again", reason);
  }
}

static void tail_on_error(void *arg, int code, const char *message)
{
  const struct tail *tail = arg;
  hk_failed(tail->argv, "the daemon says: %s (%s)", message, hankel_error_name(code));
}

/* Until SIGINT comes or something fails; the exit code. */
static int tail_follow(hankel *h, struct tail *tail)
{
  while (!interrupted) {
    const int timeout = hankel_timeout(h), wait = timeout < 0 || timeout > SLICE ? SLICE : timeout;
    if (hankel_step(h, wait) < 0)
      return hk_failed(tail->argv, "%s", hankel_error(h));
    if (fflush(stdout) != 0)
      return HK_EXIT_FAILED; /* hk_finish_output says why */
    if (tail->lost && !tail->forever && hk_monotonic() - tail->lost > (int64_t)HK_LINK_PATIENCE * 1000000)
      return hk_failed(tail->argv, "the daemon did not come back");
  }
  return HK_EXIT_DONE;
}

/* Without a log of events --since has nothing to begin with: better said than waited for. */
static void look_for_log(hankel *h)
{
  char *text = NULL;
  cJSON *report = hankel_status(h, &text, HK_LINK_WAIT) < 0 ? NULL : cJSON_Parse(text);
  const cJSON *mode = cJSON_GetObjectItem(cJSON_GetObjectItem(report, "durability"), "mode");
  if (cJSON_IsString(mode) && strcmp(mode->valuestring, "none") == 0)
    fputs("hankel tail: the daemon keeps no log of events (durability = none): only those from now on are shown\n", stderr);
  cJSON_Delete(report);
  free(text);
}

struct wanted {
  const char *match;
  float min_score;
  uint32_t what;
  uint64_t since;
};

/* With a typing error in the glob, or where nothing makes incidents, nothing would ever come, and nobody would know why. */
static void look_for_senders(hankel *h, const struct wanted *w)
{
  char *text = NULL, *status = NULL;
  cJSON *list = *w->match && hankel_sensors(h, w->match, 1, 0, &text, HK_LINK_WAIT) >= 0 ? cJSON_Parse(text) : NULL;
  if (list && cJSON_GetArraySize(cJSON_GetObjectItem(list, "sensors")) == 0 && !cJSON_IsNumber(cJSON_GetObjectItem(list, "next")))
    fprintf(stderr, "hankel tail: no sensor has a name that matches %s so far; hankel sensors lists them\n", w->match);
  cJSON *report = w->what & HANKEL_INCIDENTS && hankel_status(h, &status, HK_LINK_WAIT) >= 0 ? cJSON_Parse(status) : NULL;
  const cJSON *incidents = cJSON_GetObjectItem(report, "incidents");
  if (incidents && cJSON_GetArraySize(cJSON_GetObjectItem(incidents, "sections")) == 0)
    fputs("hankel tail: the daemon makes no incidents: its configuration has no [incidents]\n", stderr);
  cJSON_Delete(list);
  cJSON_Delete(report);
  free(text);
  free(status);
}

/* What is asked for, given what is left of it by --min-score. */
static uint32_t what_of(uint32_t what, bool events, bool incidents, enum hk_format format)
{
  if (events || incidents)
    what &= ~(uint32_t)(HANKEL_SCORES | HANKEL_UNSCORED);
  if (incidents)
    what = events ? what | HANKEL_INCIDENTS : HANKEL_INCIDENTS;
  return format != HK_FORMAT_CSV && what & HANKEL_SCORES ? what | HANKEL_VALUES : what;
}

/* Subscribes and shows what comes; the exit code. */
static int tail_show(hankel *h, struct tail *tail, const char *address, const struct wanted *w)
{
  int code;
  const struct sigaction interrupt = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
  if (sigaction(SIGINT, &interrupt, NULL) < 0) {
    code = hk_failed(tail->argv, "cannot take signals: %s", strerror(errno));
  } else if (hankel_subscribe_since(h, w->match, w->min_score, w->what, w->since) < 0 || hankel_sync(h, HK_LINK_WAIT) < 0) {
    code = hk_failed(tail->argv, "cannot subscribe at %s: %s", address, hk_link_error(h, address));
  } else {
    if (tail->positions)
      look_for_log(h);
    fprintf(stderr, "hankel tail: subscribed at %s\n", address);
    if (w->what & HANKEL_SCORES)
      hk_print_header(stdout, tail->format, false, NULL, 0);
    look_for_senders(h, w);
    code = tail_follow(h, tail);
  }
  return code;
}

static int connect_and_show(struct tail *tail, const char *address, struct hankel_options *link, const struct wanted *w)
{
  hankel *h;
  link->arg = tail;
  link->callbacks = (struct hankel_callbacks){ .scores = on_scores,
                                               .event = tail_on_event,
                                               .incident = on_incident,
                                               .gap = on_gap,
                                               .connected = tail_on_connected,
                                               .disconnected = tail_on_disconnected,
                                               .error = tail_on_error };
  int code = hk_link_open(&h, tail->argv, address, link);
  if (code != 0)
    return code;
  code = tail_show(h, tail, address, w);
  hankel_close(h);
  return code;
}

static const struct option options[] = {
  { "from", required_argument, NULL, 'f' },
  { "match", required_argument, NULL, 'm' },
  { "min-score", required_argument, NULL, 's' },
  { "events", no_argument, NULL, 'e' },
  { "incidents", no_argument, NULL, 'i' },
  { "since", required_argument, NULL, 'p' },
  { "forever", no_argument, NULL, 'w' },
  { "format", required_argument, NULL, 'o' },
  HK_SECURE_OPTIONS,
  { "help", no_argument, NULL, 'h' },
  { 0 },
};

int hk_command_tail(int argc, char **argv)
{
  static const char *const formats[] = { "text", "jsonl", "csv", NULL };
  struct tail tail = { .argv = argv, .format = HK_FORMAT_TEXT };
  uint32_t what = HANKEL_SCORES | HANKEL_UNSCORED | HANKEL_EVENTS | HANKEL_NOTICES | HANKEL_DETAILS | HANKEL_NOTES;
  const char *address = HK_LINK_ADDRESS, *match = "";
  double min_score = 0;
  uint64_t since = HANKEL_NOW;
  bool events = false, incidents = false;
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  int option, format = 0, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'f':
      address = optarg;
      break;
    case 'c':
      break; /* of before: all machines' scores are shown anyway */
    case 'm':
      match = optarg;
      break;
    case 's':
      code = hk_option_real(argv, "--min-score", optarg, 0, 1, &min_score);
      what &= ~(uint32_t)HANKEL_UNSCORED;
      break;
    case 'e':
      events = true;
      break;
    case 'i':
      incidents = true;
      break;
    case 'p':
      code = hk_option_whole(argv, "--since", optarg, 0, INT64_MAX, &since);
      tail.positions = true;
      tail.position = since;
      break;
    case 'w':
      tail.forever = true;
      break;
    case 'o':
      code = hk_option_word(argv, "--format", optarg, formats, &format);
      tail.format = (enum hk_format)format;
      break;
    case HK_OPTION_HELP:
      fputs(tail_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      code = hk_secure_take(&link.security, option, optarg);
    }
    if (code != 0)
      return code;
  }
  if (optind != argc)
    return hk_usage(argv, "%s: unexpected argument", argv[optind]);
  const struct wanted wanted = { match, (float)min_score, what_of(what, events, incidents, tail.format), since };
  code = connect_and_show(&tail, address, &link, &wanted);
  return hk_finish_output(argv, code);
}
