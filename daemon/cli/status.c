/* hankel status: the daemon's counters, as JSON or as a table. The table shows whatever the daemon reports: a section for
 * each object, a line for each number. */
#include "daemon/cli/format.h"
#include "daemon/cli/link.h"
#include "daemon/cli/options.h"
#include "daemon/cli/secure.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_text[] = "usage: hankel status [OPTION...]\n\n"
                                "Shows the daemon's counters.\n\n"
                                "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n"
                                "  --json             one JSON object, as the daemon sends it\n" HK_SECURE_HELP "\n"
                                "examples:\n"
                                "  hankel status\n"
                                "  hankel status --json | python3 -m json.tool\n";

/* A whole number in groups of three digits, another one as it is. */
static void number_text(double value, char *out, size_t size)
{
  char plain[32];
  hk_number_text(value, plain);
  if (value != floor(value) || fabs(value) >= 1e15) {
    snprintf(out, size, "%s", plain);
    return;
  }
  const size_t length = strlen(plain);
  size_t used = 0;
  for (size_t i = 0; i < length && used + 2 < size; i++) {
    out[used++] = plain[i];
    if (plain[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
      out[used++] = ',';
  }
  out[used] = 0;
}

static void print_name(const char *name, int indent)
{
  int used = printf("%*s", indent, "");
  for (; *name; name++, used++)
    putchar(*name == '_' ? ' ' : *name);
  if (used < 34)
    printf("%*s", 34 - used, "");
}

static void print_value(const cJSON *value)
{
  char text[48];
  if (cJSON_IsNumber(value)) {
    number_text(value->valuedouble, text, sizeof text);
    printf("%18s\n", text);
  } else if (cJSON_IsString(value)) {
    printf("%18s\n", value->valuestring);
  } else {
    printf("%18s\n", cJSON_IsTrue(value) ? "yes" : cJSON_IsFalse(value) ? "no" : "-");
  }
}

/* Values first, then what is nested. */
static void print_object(const cJSON *object, int indent)
{
  const cJSON *item;
  cJSON_ArrayForEach(item, object)
  {
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
      continue;
    print_name(item->string ? item->string : "", indent);
    print_value(item);
  }
  cJSON_ArrayForEach(item, object)
  {
    if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
      continue;
    if (indent == 0)
      putchar('\n');
    const cJSON *name = cJSON_GetObjectItem(item, "name");
    printf("%*s%s\n", indent, "", item->string ? item->string : cJSON_IsString(name) ? name->valuestring : "-");
    print_object(item, indent + 2);
  }
}

int hk_command_status(int argc, char **argv)
{
  static const struct option options[] = {
    { "from", required_argument, NULL, 'f' },
    { "json", no_argument, NULL, 'j' },
    HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  const char *address = HK_LINK_ADDRESS;
  bool json = false;
  char *text = NULL;
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  int option;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'f':
      address = optarg;
      break;
    case 'j':
      json = true;
      break;
    case HK_OPTION_HELP:
      fputs(help_text, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      if (hk_secure_take(&link.security, option, optarg) != 0)
        return HK_EXIT_USAGE;
    }
  }
  if (optind != argc)
    return hk_usage(argv, "%s: no argument is wanted", argv[optind]);
  link.once = 1;
  hankel *h;
  int code = hk_link_open(&h, argv, address, &link);
  if (code != 0)
    return code;
  if (hankel_status(h, &text, HK_LINK_WAIT) < 0) {
    code = hk_failed(argv, "no report from the daemon at %s: %s", address, hankel_error(h));
  } else if (json) {
    puts(text);
  } else {
    cJSON *report = cJSON_Parse(text);
    if (report)
      print_object(report, 0);
    else
      code = hk_failed(argv, "the daemon's report is not JSON");
    cJSON_Delete(report);
  }
  free(text);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
