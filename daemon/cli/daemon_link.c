/* Connecting to the daemon. */
#include "daemon/cli/daemon_link.h"
#include "cpu/monotonic.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *hk_link_error(const hankel *h, const char *address)
{
  const char *why = hankel_error(h);
  const size_t length = strlen(address);
  return strncmp(why, address, length) == 0 && strncmp(why + length, ": ", 2) == 0 ? why + length + 2 : why;
}

/* Whether the server accepted the connection and closed it. */
static bool shown_out(const char *why)
{
  return strstr(why, "closed the connection") || strcmp(why, strerror(ECONNRESET)) == 0 || strcmp(why, strerror(EPIPE)) == 0;
}

/* Adds the likely cause if the message does not name it. */
static const char *hint(const char *why, const struct hankel_options *options)
{
#define TOO_MUCH "has had too much of this address (max_failures, for a minute; max_newcomers; max_connections_per_address)"
  if (strcmp(why, strerror(ECONNREFUSED)) == 0)
    return "; is hankeld running, and has it a binary listener there?";
  if (shown_out(why))
    return options->security.tls ? "; so does a listener that " TOO_MUCH
                                 : "; a listener with TLS does so (--tls, --ca), or one that " TOO_MUCH;
  if (strstr(why, "wrong version number"))
    return "; is that a listener with TLS?";
  if (strstr(why, "bad magic")) /* lines of text, for one */
    return "; is this the daemon's binary listener?";
  if (strstr(why, "local issuer") || strstr(why, "self-signed"))
    return " (--ca FILE names its authority)";
  if (strstr(why, "the key is looked for there"))
    return " (--key)";
  return "";
#undef TOO_MUCH
}

/* Waits for the daemon's greeting, because it may still be starting. If the daemon closes the connection before that, does not
 * try again: the result would be the same, and a listener with TLS counts each attempt as a failure of our address. Returns 0
 * or a negative errno. */
static int wait_for_greeting(hankel *h, const char *address)
{
  const int64_t deadline = hk_monotonic() + (int64_t)HK_LINK_WAIT * 1000000;
  while (!hankel_connected(h)) {
    const int64_t left = (deadline - hk_monotonic()) / 1000000;
    if (shown_out(hk_link_error(h, address)))
      return -ECONNRESET;
    if (left <= 0)
      return -ETIMEDOUT;
    const int status = hankel_step(h, (int)left);
    if (status < 0)
      return status;
  }
  return 0;
}

/* Refuses a file that cannot be read, before the daemon is looked for. Returns 0 or an exit code. */
static int check_files(char **argv, const struct hankel_security *s)
{
  const struct {
    const char *option, *path;
  } files[] = { { "--ca", s->ca }, { "--cert", s->certificate }, { "--key", s->key }, { "--token-file", s->token_file } };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (files[i].path && access(files[i].path, R_OK) != 0)
      return hk_failed(argv, "%s %s: %s", files[i].option, files[i].path, strerror(errno));
  return 0;
}

int hk_link_open(hankel **out, char **argv, const char *address, struct hankel_options *options)
{
  char client[64];
  snprintf(client, sizeof client, "hankel %s %s", argv[0], HANKELD_VERSION);
  options->address = address;
  options->client = client;
  *out = NULL;
  if (options->security.key && !options->security.certificate)
    return hk_usage(argv, "--key goes with --cert: it is the key of that certificate");
  const int unreadable = check_files(argv, &options->security);
  if (unreadable != 0)
    return unreadable;
  hankel *h = hankel_open(options);
  if (!h)
    return hk_failed(argv, "out of memory");
  const int status = wait_for_greeting(h, address);
  if (status == 0) {
    *out = h;
    return 0;
  }
  const char *why = hk_link_error(h, address);
  if (!*why) /* the server accepts connections but does not answer */
    why = status == -ETIMEDOUT ? "no answer; is this the daemon's binary listener, over TCP?" : strerror(-status);
  const int code = status == -EINVAL
                       ? hk_usage(argv, "%s: %s", address, why)
                       : hk_failed(argv, "cannot connect to the daemon at %s: %s%s", address, why, hint(why, options));
  hankel_close(h);
  return code;
}

hankel *hk_link_ask(int argc, char **argv, const char *help, const char **address, struct hk_link_shown *shown, int *code)
{
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' }, /* the first two, to be left out */
    { "all", no_argument, NULL, 'a' },
    { "from", required_argument, NULL, 'f' },
    HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  hankel *h = NULL;
  int option;
  *address = HK_LINK_ADDRESS;
  link.once = 1;
  while ((option = hk_option_next(argc, argv, shown ? options : options + 2)) != HK_OPTION_END) {
    if (option == 'f') {
      *address = optarg;
    } else if (option == 'j') {
      shown->json = true;
    } else if (option == 'a') {
      shown->all = true;
    } else if (option == HK_OPTION_HELP) {
      fputs(help, stdout);
      *code = hk_finish_output(argv, HK_EXIT_DONE);
      return NULL;
    } else if (hk_secure_take(&link.security, option, optarg) != 0) {
      *code = HK_EXIT_USAGE;
      return NULL;
    }
  }
  *code = optind == argc ? hk_link_open(&h, argv, *address, &link) : hk_usage(argv, "%s: unexpected argument", argv[optind]);
  return h;
}

int hk_link_answered(hankel *h, char **argv, const char *address, int status, char *text)
{
  int code = status == 0 ? HK_EXIT_DONE : HK_EXIT_FAILED;
  if (status < 0)
    code = hk_failed(argv, "the daemon at %s: %s", address, hk_link_error(h, address));
  else
    fputs(text, status == 0 ? stdout : stderr);
  free(text);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
