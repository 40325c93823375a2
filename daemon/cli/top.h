/* hankel top: what stands now, and how the daemon does, in the terminal, live. */
#ifndef HK_TOP_H
#define HK_TOP_H

int hk_command_top(int argc, char **argv);

#endif
