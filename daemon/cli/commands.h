/* The subcommands of hankel, each in the file of its name, except `notify`: notify_test.c. A subcommand gets argv with its own
 * name in front, and returns an exit code (enum hk_exit). */
#ifndef HK_CLI_COMMANDS_H
#define HK_CLI_COMMANDS_H

#include "daemon/cli/options.h"

int hk_command_feed(int argc, char **argv);
int hk_command_tail(int argc, char **argv);
int hk_command_replay(int argc, char **argv);
int hk_command_top(int argc, char **argv);
int hk_command_status(int argc, char **argv);
int hk_command_sensors(int argc, char **argv);
int hk_command_state(int argc, char **argv);
int hk_command_cluster(int argc, char **argv);
int hk_command_reload(int argc, char **argv);
int hk_command_ack(int argc, char **argv);
int hk_command_maintenance(int argc, char **argv);
int hk_command_notify(int argc, char **argv);
int hk_command_token(int argc, char **argv);
int hk_command_model(int argc, char **argv);
int hk_command_bench(int argc, char **argv);
int hk_command_evaluate(int argc, char **argv);

#endif
