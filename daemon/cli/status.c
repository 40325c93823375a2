/* hankel status: five lines for operators, and the daemon's counters, as JSON or as a table. The table shows everything that
 * the daemon reports: a section for each object, and a line for each number, or one line if all are 0. */
#include "cpu/monotonic.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/format.h"
#include "daemon/cli/options.h"
#include "daemon/cli/status_summary.h"
#include "daemon/cli/tls_options.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WIDTH 34          /* columns of names */
#define WHILE 500000000   /* ns between two reports, */
#define LONGER 1100000000 /* unless no point arrived meanwhile: many senders send once a second */

static const char status_help[] =
    "usage: hankel status [OPTION...]\n\n"
    "Shows whether the daemon is healthy, its sensors, incoming points, what is refused and why, and standing\n"
    "alerts. Exits with 3 if the daemon answers and something is WRONG.\n\n"
    "  --all              also show all counters; PROTOCOL.md (STATUS) describes each\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n"
    "  --json             one JSON object, as the daemon sends it\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel status\n"
    "  hankel status --all\n"
    "  hankel status --json | python3 -m json.tool\n";

/* Prints a number with its integer digits in groups of three. */
static void status_number_text(double value, char *out, size_t size)
{
  char plain[32];
  hk_number_text(value, plain);
  if (fabs(value) >= 1e15) {
    snprintf(out, size, "%s", plain);
    return;
  }
  const size_t whole = strcspn(plain, ".e");
  size_t used = 0;
  for (size_t i = 0; plain[i] && used + 2 < size; i++) {
    out[used++] = plain[i];
    if (plain[i] != '-' && i + 1 < whole && (whole - i - 1) % 3 == 0)
      out[used++] = ',';
  }
  out[used] = 0;
}

/* Prints a name, and blanks up to column `width`. */
static void print_name(const char *name, int indent, int width)
{
  char text[256];
  int used = printf("%*s", indent, "") + snprintf(text, sizeof text, "%s", name);
  for (char *p = text; *p; p++)
    *p = *p == '_' ? ' ' : *p;
  hk_print_name(stdout, text);
  if (used < width)
    printf("%*s", width - used, "");
}

static void print_value(const cJSON *value)
{
  char text[48];
  if (cJSON_IsNumber(value)) {
    status_number_text(value->valuedouble, text, sizeof text);
    printf("%18s\n", text);
  } else if (cJSON_IsString(value)) {
    printf("%*s", 18 - (int)strnlen(value->valuestring, 18), "");
    hk_print_name(stdout, value->valuestring);
    putchar('\n');
  } else {
    printf("%18s\n", cJSON_IsTrue(value) ? "yes" : cJSON_IsFalse(value) ? "no" : "-");
  }
}

/* Whether all numbers in a section are 0, so nothing has happened. */
static bool all_zero(const cJSON *item)
{
  const cJSON *child;
  if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
    return cJSON_IsNumber(item) ? item->valuedouble == 0 : cJSON_IsString(item) && !*item->valuestring;
  cJSON_ArrayForEach(child, item)
  {
    if (!all_zero(child))
      return false;
  }
  return true;
}

/* Prints values first, then nested sections with a heading. */
static void print_object(const cJSON *object, int indent)
{
  const cJSON *item, *heading = indent > 0 ? cJSON_GetObjectItem(object, "name") : NULL;
  uint32_t number = 0;
  cJSON_ArrayForEach(item, object)
  {
    if (cJSON_IsObject(item) || cJSON_IsArray(item) || item == heading)
      continue;
    print_name(item->string ? item->string : "", indent, WIDTH);
    print_value(item);
  }
  cJSON_ArrayForEach(item, object)
  {
    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
      continue;
    const cJSON *own = cJSON_GetObjectItem(item, "name");
    char text[16];
    snprintf(text, sizeof text, "%u", number++);
    if (indent == 0)
      putchar('\n');
    print_name(item->string ? item->string : cJSON_IsString(own) ? own->valuestring : text, indent, all_zero(item) ? WIDTH : 0);
    puts(all_zero(item) ? "           nothing" : "");
    if (!all_zero(item))
      print_object(item, indent + 2);
  }
}

/* Colours are used on a terminal, unless NO_COLOR is set (https://no-color.org). */
static bool is_coloured(void)
{
  const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Requests a report once `wait` ns have passed since `began`. NULL: none came. */
static char *report_later(hankel *h, int64_t began, int64_t wait)
{
  char *text = NULL;
  while (hk_monotonic() - began < wait)
    poll(NULL, 0, (int)(wait - (hk_monotonic() - began)) / 1000000 + 1);
  return hankel_status(h, &text, HK_LINK_WAIT) < 0 ? NULL : text;
}

static bool no_point_between(const cJSON *before, const cJSON *after)
{
  return cJSON_Compare(cJSON_GetObjectItem(cJSON_GetObjectItem(before, "points"), "in"),
                       cJSON_GetObjectItem(cJSON_GetObjectItem(after, "points"), "in"), true);
}

/* Asks once more after a while, for the points a second of now. An exit code. */
static int status_show(hankel *h, char **argv, const char *address, const char *first, bool all)
{
  const int64_t began = hk_monotonic();
  char *text = report_later(h, began, WHILE);
  cJSON *before = cJSON_Parse(first), *report = cJSON_Parse(text);
  if (text && no_point_between(before, report)) {
    free(text);
    cJSON_Delete(report);
    text = report_later(h, began, LONGER);
    report = cJSON_Parse(text);
  }
  const double seconds = (double)(hk_monotonic() - began) * 1e-9;
  int code = HK_EXIT_FAILED;
  if (!text) {
    hk_failed(argv, "no report from the daemon at %s: %s", address, hk_link_error(h, address));
  } else if (!before || !report) {
    hk_failed(argv, "the daemon's report is not JSON");
  } else {
    code = hk_status_summary(stdout, report, before, seconds, is_coloured()) ? HK_EXIT_DONE : HK_EXIT_WRONG;
    if (all) {
      putchar('\n');
      print_object(report, 0);
    }
  }
  cJSON_Delete(before);
  cJSON_Delete(report);
  free(text);
  return code;
}

int hk_command_status(int argc, char **argv)
{
  const char *address;
  struct hk_link_shown shown = { 0 };
  char *text = NULL;
  int code;
  hankel *h = hk_link_ask(argc, argv, status_help, &address, &shown, &code);
  if (!h)
    return code;
  if (hankel_status(h, &text, HK_LINK_WAIT) < 0) {
    code = hk_failed(argv, "no report from the daemon at %s: %s", address, hk_link_error(h, address));
  } else if (shown.json) {
    puts(text);
  } else {
    code = status_show(h, argv, address, text, shown.all);
  }
  free(text);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
