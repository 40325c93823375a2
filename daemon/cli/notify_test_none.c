/* A hankel that is built without libcurl. */
#include "daemon/cli/notify_test.h"

#include "daemon/cli/options.h"

int hk_command_notify(int argc, char **argv)
{
  (void)argc;
  return hk_failed(argv, "this hankel is built without libcurl, which sends");
}
