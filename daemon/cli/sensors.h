/* hankel sensors: the sensors of a daemon, and how each is. */
#ifndef HK_CLI_SENSORS_H
#define HK_CLI_SENSORS_H

int hk_command_sensors(int argc, char **argv);

#endif
