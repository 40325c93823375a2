/* hankel model: what can be done with a model file without a daemon. */
#ifndef HK_CLI_MODEL_H
#define HK_CLI_MODEL_H

/* As the commands of options.h. */
int hk_command_model(int argc, char **argv);

#endif
