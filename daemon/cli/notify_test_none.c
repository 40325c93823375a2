/* A build without libcurl. */
#include "daemon/cli/commands.h"
#include "daemon/cli/notify_test.h"

#include "daemon/cli/options.h"

#include <stdio.h>
#include <string.h>

int hk_command_notify(int argc, char **argv)
{
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
      return fputs(HK_NOTIFY_HELP, stdout) < 0 ? HK_EXIT_FAILED : 0;
  return hk_failed(argv, "this hankel is built without libcurl");
}
