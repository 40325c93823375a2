/* Command line of hankel: what its subcommands share in reading options and refusing wrong usage.
 *
 * A subcommand gets argv with its own name in front and returns the exit code. Wrong usage prints one line that names what is
 * wrong and points to the help, and returns HK_EXIT_USAGE. */
#ifndef HK_OPTIONS_H
#define HK_OPTIONS_H

#include <getopt.h>
#include <stdint.h>

enum hk_exit { HK_EXIT_DONE = 0, HK_EXIT_FAILED = 1, HK_EXIT_USAGE = 2, HK_EXIT_WRONG = 3 };

/* What hk_option_next returns besides an option's `val`. */
enum hk_option { HK_OPTION_END = -1, HK_OPTION_WRONG = -2, HK_OPTION_HELP = 'h' };

/* Next option, as getopt_long with long options only (and -h, and -c where there is --config, whose val is c). HK_OPTION_WRONG: a
 * message was printed. */
int hk_option_next(int argc, char **argv, const struct option *options);

/* A whole number from min to max into *out. 0, or HK_EXIT_USAGE with a message that names the option. */
int hk_option_whole(char **argv, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* A number from min to max into *out, likewise. */
int hk_option_real(char **argv, const char *option, const char *text, double min, double max, double *out);

/* One of `words` (NULL at the end): its index into *out, likewise. */
int hk_option_word(char **argv, const char *option, const char *text, const char *const *words, int *out);

/* The first argument as one of a command's own words (NULL at the end), such as begin and end: its index into *out, likewise. A
 * message names the word that was nearest. */
int hk_option_subcommand(int argc, char **argv, const char *const *words, int *out);

/* Prints "hankel COMMAND: MESSAGE (see hankel COMMAND --help)". Returns HK_EXIT_USAGE. */
int hk_usage(char **argv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "hankel COMMAND: MESSAGE". Returns HK_EXIT_FAILED. */
int hk_failed(char **argv, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Last act of a command that prints: flushes standard output. `code`, or HK_EXIT_FAILED with a message when it could not be
 * written. */
int hk_finish_output(char **argv, int code);

#endif
