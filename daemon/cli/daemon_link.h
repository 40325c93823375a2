/* Connecting to the daemon, for the commands that talk to it. */
#ifndef HK_LINK_H
#define HK_LINK_H

#include "proto/hankel.h"

#include <stdbool.h>

#define HK_LINK_ADDRESS "127.0.0.1:7410"
#define HK_LINK_WAIT 5000      /* ms: for the first connection, and for a reply */
#define HK_LINK_PATIENCE 10000 /* ms: for a daemon that went away to come back */

/* Opens a handle and waits until it is connected. Callbacks and arg go into *options; address and client are filled in. 0 and
 * *out, or an exit code after a message: wrong usage when the address is none. *out is then NULL. */
int hk_link_open(hankel **out, char **argv, const char *address, struct hankel_options *options);

/* The last fault, without the address that libhankel puts in front of it: that is said already. */
const char *hk_link_error(const hankel *h, const char *address);

struct hk_link_shown { /* all false: as people want it */
  bool json, all;
};

/* For commands that ask the daemon one thing and end: reads their options (--from, --help, those of tls_options.h, and --json
 * and --all where `shown` is not NULL) and connects, to *address. NULL: there is nothing left to do, and *code is the exit code.
 */
hankel *hk_link_ask(int argc, char **argv, const char *help, const char **address, struct hk_link_shown *shown, int *code);

/* For commands that have something done: prints what the daemon says of it, on standard error where it was not done. status and
 * text, which is freed: of a call such as hankel_reload. Closes the handle. Returns the exit code. */
int hk_link_answered(hankel *h, char **argv, const char *address, int status, char *text);

#endif
