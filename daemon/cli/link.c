/* Connecting to the daemon. */
#include "daemon/cli/link.h"
#include "daemon/cli/options.h"

#include <stdio.h>
#include <string.h>

hankel *hk_link_open(char **argv, const char *address, struct hankel_options *options)
{
  char client[64];
  snprintf(client, sizeof client, "hankel %s %s", argv[0], HANKELD_VERSION);
  options->address = address;
  options->client = client;
  hankel *h = hankel_open(options);
  const int status = h ? hankel_wait(h, HK_LINK_WAIT) : -1;
  if (status == 0)
    return h;
  const char *why = h ? hankel_error(h) : "out of memory";
  const size_t length = strlen(address);
  if (strncmp(why, address, length) == 0 && strncmp(why + length, ": ", 2) == 0) /* it is named once */
    why += length + 2;
  hk_failed(argv, "cannot connect to the daemon at %s: %s", address, *why ? why : strerror(-status));
  hankel_close(h);
  return NULL;
}
