/* hankel reload: makes the daemon read its configuration again, and says what came of it. */
#include "daemon/cli/link.h"
#include "daemon/cli/options.h"
#include "daemon/cli/secure.h"

#include <stdio.h>
#include <stdlib.h>

#define PATIENCE 120000 /* ms: sensors may have to be let go, millions of them */

static const char help_text[] =
    "usage: hankel reload [OPTION...]\n\n"
    "Makes the daemon read its configuration again. Prints what has changed, and what needs a restart; or what is wrong with\n"
    "the file, and then all stays as it was and the exit code is 1.\n\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "example:\n"
    "  hankel reload\n";

int hk_command_reload(int argc, char **argv)
{
  static const struct option options[] = {
    { "from", required_argument, NULL, 'f' },
    HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  const char *address = HK_LINK_ADDRESS;
  char *text = NULL;
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  int option;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'f':
      address = optarg;
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
  const int status = hankel_reload(h, &text, PATIENCE);
  if (status < 0)
    code = hk_failed(argv, "no answer from the daemon at %s: %s", address, hankel_error(h));
  else
    fputs(text, status == 0 ? stdout : stderr);
  if (status > 0)
    code = HK_EXIT_FAILED;
  free(text);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
