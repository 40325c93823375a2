/* hankel top: live view of standing alerts and of the daemon's state, in the terminal. */
#ifndef HK_TOP_H
#define HK_TOP_H

int hk_command_top(int argc, char **argv);

#endif
