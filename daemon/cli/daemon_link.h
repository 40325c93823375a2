/* Connects commands to the daemon. */
#ifndef HK_DAEMON_LINK_H
#define HK_DAEMON_LINK_H

#include "proto/hankel.h"

#include <stdbool.h>

#define HK_LINK_ADDRESS "127.0.0.1:7410"
#define HK_LINK_WAIT 5000      /* ms: timeout of the first connection and of a reply */
#define HK_LINK_PATIENCE 10000 /* ms: timeout of a reconnection */

/* Opens a handle and waits until it is connected. The caller sets callbacks and arg in *options; address and client are set here.
 * Returns 0 and *out, or an exit code after a message (HK_EXIT_USAGE for an invalid address); *out is then NULL. */
int hk_link_open(hankel **out, char **argv, const char *address, struct hankel_options *options);

/* The last error, without the address that libhankel prefixes, since the messages of commands have it already. */
const char *hk_link_error(const hankel *h, const char *address);

struct hk_link_shown { /* all false: text for people */
  bool json, all;
};

/* For commands with one request: parses their options (--from, --help, those of tls_options.h, and --json and --all unless
 * `shown` is NULL) and connects to *address. Returns NULL if the command is done; then *code is its exit code.
 */
hankel *hk_link_ask(int argc, char **argv, const char *help, const char **address, struct hk_link_shown *shown, int *code);

/* For commands that request an action: prints the daemon's answer, on standard error if the action failed. status, text: results
 * of a call such as hankel_reload; frees text. Closes the handle. Returns the exit code. */
int hk_link_answered(hankel *h, char **argv, const char *address, int status, char *text);

#endif
