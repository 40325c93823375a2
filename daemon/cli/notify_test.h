/* hankel notify: as a subcommand of options.h. */
#ifndef HK_NOTIFY_TEST_H
#define HK_NOTIFY_TEST_H

#define HK_NOTIFY_HELP                                                                                                           \
  "usage: hankel notify test -c FILE NAME\n\n"                                                                                   \
  "Sends one message to the receiver [notify NAME] of a configuration, once, and shows what it\n"                                \
  "answers. The message says that it is a test. The daemon takes no part in it.\n\n"                                             \
  "  -c, --config FILE  the daemon's configuration\n\n"                                                                          \
  "The file of its secret_file has to be readable: run it as the daemon's user, or as root.\n\n"                                 \
  "example:\n"                                                                                                                   \
  "  sudo -u hankeld hankel notify test -c /usr/local/etc/hankeld.conf oncall\n"

int hk_command_notify(int argc, char **argv);

#endif
