/* The help of hankel notify, with and without libcurl. */
#ifndef HK_NOTIFY_TEST_H
#define HK_NOTIFY_TEST_H

#define HK_NOTIFY_HELP                                                                                                           \
  "usage: hankel notify test -c FILE NAME\n\n"                                                                                   \
  "Sends one test message to the receiver [notify NAME] of a configuration, and prints what it\n"                                \
  "answers. The daemon is not involved.\n\n"                                                                                     \
  "  -c, --config FILE  the daemon's configuration\n\n"                                                                          \
  "Its secret_file must be readable: run it as the daemon's user, or as root.\n\n"                                               \
  "example:\n"                                                                                                                   \
  "  sudo -u hankeld hankel notify test -c /etc/hankeld.conf oncall\n"

#endif
