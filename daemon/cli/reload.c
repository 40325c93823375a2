/* hankel reload: makes the daemon read its configuration again, and prints the outcome. */
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include <stdio.h>

#define PATIENCE 120000 /* ms: the daemon may have to evict millions of sensors */

static const char reload_help[] =
    "usage: hankel reload [OPTION...]\n\n"
    "Reloads the daemon's configuration. Prints what has changed and what needs a restart. If the file has a fault,\n"
    "prints each fault, changes nothing, and exits with 1.\n\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "example:\n"
    "  hankel reload\n";

int hk_command_reload(int argc, char **argv)
{
  const char *address;
  char *text = NULL;
  int code;
  hankel *h = hk_link_ask(argc, argv, reload_help, &address, NULL, &code);
  if (!h)
    return code;
  const int status = hankel_reload(h, &text, PATIENCE);
  return hk_link_answered(h, argv, address, status, text);
}
