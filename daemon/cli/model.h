/* hankel model: what can be done with a model file without a daemon. */
#ifndef HK_MODEL_COMMAND_H
#define HK_MODEL_COMMAND_H

/* As the commands of options.h. */
int hk_command_model(int argc, char **argv);

#endif
