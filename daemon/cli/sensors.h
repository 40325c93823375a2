/* hankel sensors: lists the sensors of a daemon and their state. */
#ifndef HK_CLI_SENSORS_H
#define HK_CLI_SENSORS_H

int hk_command_sensors(int argc, char **argv);

#endif
