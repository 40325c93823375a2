/* Connecting to the daemon. */
#include "daemon/cli/link.h"
#include "daemon/cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int hk_link_open(hankel **out, char **argv, const char *address, struct hankel_options *options)
{
  char client[64];
  snprintf(client, sizeof client, "hankel %s %s", argv[0], HANKELD_VERSION);
  options->address = address;
  options->client = client;
  *out = NULL;
  hankel *h = hankel_open(options);
  if (!h)
    return hk_failed(argv, "out of memory");
  const int status = hankel_wait(h, HK_LINK_WAIT);
  if (status == 0) {
    *out = h;
    return 0;
  }
  const char *why = hankel_error(h);
  const size_t length = strlen(address);
  if (strncmp(why, address, length) == 0 && strncmp(why + length, ": ", 2) == 0) /* it is named once */
    why += length + 2;
  if (!*why) /* somebody listens but does not speak to us */
    why = status == -ETIMEDOUT ? "no answer; is this the daemon's binary listener, over TCP?" : strerror(-status);
  const int code = status == -EINVAL ? hk_usage(argv, "%s: %s", address, why)
                                     : hk_failed(argv, "cannot connect to the daemon at %s: %s", address, why);
  hankel_close(h);
  return code;
}
