/* hankel notify: as a subcommand of options.h. */
#ifndef HK_NOTIFY_TEST_H
#define HK_NOTIFY_TEST_H

int hk_command_notify(int argc, char **argv);

#endif
