/* Options for TLS and credentials, of the commands that connect to the daemon. */
#ifndef HK_TLS_OPTIONS_H
#define HK_TLS_OPTIONS_H

#include "daemon/cli/options.h"
#include "proto/hankel.h"

/* Values of these options, greater than those of any command. */
enum hk_secure_option { HK_SECURE_TLS = 1000, HK_SECURE_CA, HK_SECURE_CERT, HK_SECURE_KEY, HK_SECURE_TOKEN, HK_SECURE_CLEAR };

#define HK_SECURE_OPTIONS                                                                                                        \
  { "tls", no_argument, NULL, HK_SECURE_TLS }, { "ca", required_argument, NULL, HK_SECURE_CA },                                  \
      { "cert", required_argument, NULL, HK_SECURE_CERT }, { "key", required_argument, NULL, HK_SECURE_KEY },                    \
      { "token-file", required_argument, NULL, HK_SECURE_TOKEN },                                                                \
  {                                                                                                                              \
    "token-in-clear", no_argument, NULL, HK_SECURE_CLEAR                                                                         \
  }

#define HK_SECURE_HELP                                                                                                           \
  "  --tls              connect by TLS; the daemon's certificate must be valid for HOST\n"                                       \
  "  --ca FILE          trusted authorities (default: those of the system)\n"                                                    \
  "  --cert FILE        client certificate; --key FILE is its key\n"                                                             \
  "  --token-file FILE  send the token in the first line of FILE; beyond loopback only by TLS, unless\n"                         \
  "  --token-in-clear   accepts that anyone on the path can read it\n"

/* Processes an option. Returns 0, or HK_EXIT_USAGE if it is not one of these. */
int hk_secure_take(struct hankel_security *security, int option, const char *value);

#endif
