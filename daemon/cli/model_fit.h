/* hankel model fit: friction and wave speed of a model file, by a recording. */
#ifndef HK_MODEL_FIT_H
#define HK_MODEL_FIT_H

#define HK_MODEL_FIT_HELP                                                                                                        \
  "usage: hankel model fit [OPTION...] FILE.model RECORDING...\n\n"                                                              \
  "Finds what the friction factors and the wave speeds of a model file have to be multiplied by so that its\n"                   \
  "model fits a recording of the line or network best, for each line of the file, and prints how far it was and\n"               \
  "is from each check. Columns that the model has no sensor for count for nothing. A wave speed is seen only\n"                  \
  "where pumps or valves were moved.\n\n"                                                                                        \
  "  --output FILE      write the model file with the numbers that were found\n"                                                 \
  "  --interval D       between rows of the model (default: the recording's)\n" HK_INPUT_HELP "\n"                               \
  "example:\n"                                                                                                                   \
  "  hankel model fit --output fitted.model trunk.model trunk.csv\n"

/* As the commands of options.h; argv: with `fit` among it. */
int hk_model_fit(int argc, char **argv);

#endif
