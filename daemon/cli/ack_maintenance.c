/* hankel ack, hankel maintenance: operators' requests to the daemon. */
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include "daemon/base/novelty_sentence.h"
#include "daemon/cli/format.h"

#include "cpu/duration.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ack_help[] =
    "usage: hankel ack [OPTION...] SENSOR\n"
    "       hankel ack --expected|--false|--undo [OPTION...] SENSOR|'#N'\n"
    "       hankel ack --list\n\n"
    "Acknowledges the standing alert of a sensor, named by the sensor or by the alert's id, SENSOR:N.\n"
    "hankel status shows by whom, and repeated messages stop.\n"
    "With --expected or --false it judges an incident (the latest of a sensor, or number N) instead: its sensors\n"
    "raise no message for a week, unless the rank of a later one (R in its message) is higher by 1.\n\n"
    "  --expected         the incident was expected\n"
    "  --false            the incident was a false alarm\n"
    "  --undo             withdraw the judgement\n"
    "  --list             list the judgements in force\n"
    "  --number N         only if the alert is number N of SENSOR\n"
    "  --by NAME          who acknowledges (default: the token's name or the address)\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel ack --by anna 'machine temperature'\n"
    "  hankel ack --expected '#35'\n";

static const char maintenance_help[] =
    "usage: hankel maintenance [OPTION...] begin GLOB DURATION\n"
    "       hankel maintenance [OPTION...] end GLOB\n\n"
    "Opens a maintenance window from now on: alerts that sensors matching GLOB (* is any run of characters, ? one)\n"
    "raise until its end are marked, and sent to no receiver; scoring continues. DURATION: 90s, 45m, 2h, 3d, also\n"
    "1h30m. `end` closes a window opened with the same GLOB. hankel status --all shows open windows; configure\n"
    "recurring ones ([maintenance NAME]).\n\n"
    "  --by NAME          who requests it (default: the token's name or the address)\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel maintenance begin 'press 4*' 90m\n"
    "  hankel maintenance end 'press 4*'\n";

struct asking {
  struct hankel_options link;
  const char *address, *by;
  uint64_t number;
  int word; /* enum hankel_operation: EXPECTED, FALSE, UNDO; 0: none of them */
  bool list;
};

/* Reads options up to the first argument. HK_EXIT_DONE with *over: it has printed the help. */
static int take_options(int argc, char **argv, const char *help_text, bool numbered, struct asking *a, bool *over)
{
  const struct option options[] = {
    { "from", required_argument, NULL, 'f' },
    { "by", required_argument, NULL, 'b' },
    HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },
    { numbered ? "number" : NULL, required_argument, NULL, 'n' },
    { "expected", no_argument, NULL, 'e' },
    { "false", no_argument, NULL, 'x' },
    { "undo", no_argument, NULL, 'u' },
    { "list", no_argument, NULL, 'l' },
    { 0 },
  };
  int option, code = 0;
  while (code == 0 && (option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'f':
      a->address = optarg;
      break;
    case 'b':
      a->by = optarg;
      break;
    case 'n':
      code = hk_option_whole(argv, "--number", optarg, 1, UINT32_MAX, &a->number);
      break;
    case 'e':
    case 'x':
    case 'u':
      if (a->word != 0)
        code = hk_usage(argv, "one of --expected, --false and --undo is wanted");
      a->word = option == 'e' ? HANKEL_EXPECTED : option == 'x' ? HANKEL_FALSE : HANKEL_UNDO;
      break;
    case 'l':
      a->list = true;
      break;
    case HK_OPTION_HELP:
      fputs(help_text, stdout);
      *over = true;
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      code = hk_secure_take(&a->link.security, option, optarg);
    }
  }
  return code;
}

/* Sends a request, and prints the answer. */
static int ack_maintenance_ask(char **argv, struct asking *a, const char *subject, bool maintenance, uint64_t duration)
{
  char *text = NULL;
  hankel *h;
  a->link.once = 1;
  const int code = hk_link_open(&h, argv, a->address, &a->link);
  if (code != 0)
    return code;
  const int status = maintenance ? hankel_maintain(h, subject, duration, a->by, &text, HK_LINK_WAIT)
                                 : hankel_acknowledge(h, subject, (uint32_t)a->number, a->by, &text, HK_LINK_WAIT);
  return hk_link_answered(h, argv, a->address, status, text);
}

/* Records an operator's verdict on an incident: '#N', or the latest of a sensor. */
static int ack_maintenance_say(char **argv, struct asking *a, const char *which)
{
  char *text = NULL;
  uint64_t incident = 0;
  hankel *h;
  int code = which[0] == '#' ? hk_option_whole(argv, "the incident", which + 1, 1, UINT32_MAX, &incident) : 0;
  a->link.once = 1;
  if (code != 0 || (code = hk_link_open(&h, argv, a->address, &a->link)) != 0)
    return code;
  const int status = hankel_feedback(h, incident > 0 ? "" : which, (uint32_t)incident, a->word, a->by, &text, HK_LINK_WAIT);
  code = hk_link_answered(h, argv, a->address, status, text);
  if (code == HK_EXIT_FAILED && which[strspn(which, "0123456789")] == 0)
    fprintf(stderr, "hankel ack: %s was taken for a sensor; an incident of this number is '#%s'\n", which, which);
  return code;
}

static void print_word(const cJSON *word)
{
  char until[HK_TIMESTAMP_SIZE];
  const cJSON *text = cJSON_GetObjectItem(word, "text"), *sensor = cJSON_GetObjectItem(word, "sensor");
  hk_timestamp_format((int64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(word, "until")), until);
  hk_print_name(stdout, cJSON_IsString(text) ? text->valuestring : "?");
  fputs(", ", stdout);
  hk_print_name(stdout, cJSON_IsString(sensor) ? sensor->valuestring : "?");
  printf("%s until %s\n", cJSON_GetNumberValue(cJSON_GetObjectItem(word, "count")) > 1 ? " and others" : "", until);
}

/* Prints the verdicts on incidents that are in force. */
static int ack_maintenance_list(char **argv, struct asking *a)
{
  char *text = NULL;
  hankel *h;
  a->link.once = 1;
  const int code = hk_link_open(&h, argv, a->address, &a->link);
  if (code != 0)
    return code;
  const int status = hankel_status(h, &text, HK_LINK_WAIT);
  cJSON *report = status < 0 ? NULL : cJSON_Parse(text);
  const cJSON *incidents = cJSON_GetObjectItem(report, "incidents"), *sections = cJSON_GetObjectItem(incidents, "sections");
  const cJSON *word, *words = cJSON_GetObjectItem(incidents, "feedback");
  if (status < 0)
    (void)hk_failed(argv, "no report from the daemon at %s: %s", a->address, hk_link_error(h, a->address));
  cJSON_ArrayForEach(word, words)
  {
    print_word(word);
  }
  if (report && cJSON_GetArraySize(words) == 0)
    fprintf(stderr, "hankel ack: no judgement is in force%s\n",
            cJSON_GetArraySize(sections) == 0 ? ": the daemon makes no incidents, its configuration has no [incidents]" : "");
  cJSON_Delete(report);
  free(text);
  hankel_close(h);
  return hk_finish_output(argv, status < 0 ? HK_EXIT_FAILED : HK_EXIT_DONE);
}

int hk_command_ack(int argc, char **argv)
{
  struct asking a = { .link = HANKEL_OPTIONS_DEFAULT, .address = HK_LINK_ADDRESS, .by = "" };
  bool over = false;
  const int code = take_options(argc, argv, ack_help, true, &a, &over);
  if (code != 0 || over)
    return code;
  if (a.list && (argc != optind || a.word != 0 || a.number != 0))
    return hk_usage(argv, "--list goes with nothing else");
  if (a.list)
    return ack_maintenance_list(argv, &a);
  if (argc - optind != 1)
    return hk_usage(argv, a.word != 0 ? "one SENSOR or '#N' is wanted (with quotes: # begins a comment in a shell)"
                                      : "one SENSOR is wanted (with quotes, if its name has spaces)");
  if (a.word != 0 && a.number != 0)
    return hk_usage(argv, "--number is of an alert, and not of an incident: say '#N'");
  if (a.word != 0)
    return ack_maintenance_say(argv, &a, argv[optind]);
  return ack_maintenance_ask(argv, &a, argv[optind], false, 0);
}

int hk_command_maintenance(int argc, char **argv)
{
  struct asking a = { .link = HANKEL_OPTIONS_DEFAULT, .address = HK_LINK_ADDRESS, .by = "" };
  bool over = false;
  int64_t duration = 0;
  const int code = take_options(argc, argv, maintenance_help, false, &a, &over);
  if (code != 0 || over)
    return code;
  static const char *const words[] = { "begin", "end", NULL };
  int word;
  if (hk_option_subcommand(argc, argv, words, &word) != 0)
    return HK_EXIT_USAGE;
  const bool begins = word == 0;
  if (argc - optind != (begins ? 3 : 2))
    return hk_usage(argv, "want %s (with quotes, if the GLOB has spaces)", begins ? "begin GLOB DURATION" : "end GLOB");
  if (begins && hk_duration_parse(argv[optind + 2], &duration) != 0)
    return hk_usage(argv, "%s: not a duration such as 90m or 2h", argv[optind + 2]);
  if (begins && !*argv[optind + 1])
    return hk_usage(argv, "the GLOB is empty; * is every sensor");
  return ack_maintenance_ask(argv, &a, argv[optind + 1], true, (uint64_t)duration);
}
