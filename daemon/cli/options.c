/* Reads options and refuses wrong usage, in the same way for every subcommand. */
#include "daemon/cli/options.h"
#include "cpu/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int hk_usage(char **argv, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "hankel %s: ", argv[0]);
  vfprintf(stderr, format, arguments);
  fprintf(stderr, " (see hankel %s --help)\n", argv[0]);
  va_end(arguments);
  return HK_EXIT_USAGE;
}

int hk_failed(char **argv, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "hankel %s: ", argv[0]);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return HK_EXIT_FAILED;
}

/* The word with the wrong option: the first option from `at` on. Words before it are arguments, which getopt skips; optind is
 * after the word, or at it if it holds several short options. */
static const char *at_fault(char **argv, int at)
{
  while (argv[at + 1] && (argv[at][0] != '-' || argv[at][1] == 0))
    at++;
  return argv[at];
}

/* Whether other commands call an option so: those that send points take the daemon's address as --to, others as --from; those
 * that report have --json, those that print events --format. */
static bool is_other_name(const char *wrong, const char *option)
{
  static const char *const names[][2] = { { "to", "from" }, { "from", "to" }, { "json", "format" } };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(wrong, names[i][0]) == 0 && strcmp(option, names[i][1]) == 0)
      return true;
  return false;
}

/* Reports the wrong option, and the one that may have been meant. */
static void no_such_option(char **argv, const char *wrong, const struct option *options)
{
  const char *meant = NULL, *word = wrong + strspn(wrong, "-");
  char name[32];
  unsigned nearest = HK_SUGGEST_FAR + 1;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
  for (; options->name && strlen(name) >= 2; options++) {
    const unsigned far = strlen(name) > 2 ? hk_suggest_distance(name, options->name) : HK_SUGGEST_FAR + 1;
    const unsigned distance = is_other_name(name, options->name) ? 0 : far;
    if (distance < nearest) {
      nearest = distance;
      meant = options->name;
    }
  }
  if (meant)
    hk_usage(argv, "%s: no such option, or not a clear one; did you mean --%s?", wrong, meant);
  else
    hk_usage(argv, "%s: no such option, or not a clear one", wrong);
}

/* The short options: -h, and -c if there is --config, as for hankeld. */
static const char *short_options(const struct option *options)
{
  for (; options->name; options++)
    if (strcmp(options->name, "config") == 0)
      return ":hc:";
  return ":h";
}

int hk_option_next(int argc, char **argv, const struct option *options)
{
  opterr = 0;
  const int at = optind, option = getopt_long(argc, argv, short_options(options), options, NULL);
  if (option == ':') {
    hk_usage(argv, "%s needs a value", argv[optind - 1]);
    return HK_OPTION_WRONG;
  }
  if (option == '?') {
    no_such_option(argv, at_fault(argv, at), options);
    return HK_OPTION_WRONG;
  }
  return option;
}

int hk_option_whole(char **argv, const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if (end == text || *end || errno || *text == '-' || *out < min || *out > max)
    return hk_usage(argv, "%s %s: want a whole number from %llu to %llu", option, text, (unsigned long long)min,
                    (unsigned long long)max);
  return 0;
}

int hk_option_real(char **argv, const char *option, const char *text, double min, double max, double *out)
{
  char *end;
  *out = strtod(text, &end);
  if (end == text || *end || !(*out >= min && *out <= max))
    return hk_usage(argv, "%s %s: want a number from %g to %g", option, text, min, max);
  return 0;
}

/* Prints a list of words, and the one that may have been meant. */
struct choice {
  char all[160], meant[48];
};

/* The index of a word; -1: it is none of them, and *out has what a message needs. */
static int find_word(const char *text, const char *const *words, struct choice *out)
{
  int n = 0;
  for (out->all[0] = 0; words[n]; n++) {
    if (strcmp(text, words[n]) == 0)
      return n;
    snprintf(out->all + strlen(out->all), sizeof out->all - strlen(out->all), "%s%s", n ? ", " : "", words[n]);
  }
  const char *meant = hk_suggest(text, words, (size_t)n, sizeof *words);
  snprintf(out->meant, sizeof out->meant, meant ? "; did you mean %s?" : "%s", meant ? meant : "");
  return -1;
}

int hk_option_word(char **argv, const char *option, const char *text, const char *const *words, int *out)
{
  struct choice choice;
  *out = find_word(text, words, &choice);
  return *out >= 0 ? 0 : hk_usage(argv, "%s %s: want one of %s%s", option, text, choice.all, choice.meant);
}

int hk_option_subcommand(int argc, char **argv, const char *const *words, int *out)
{
  struct choice choice;
  const char *word = optind < argc ? argv[optind] : "";
  *out = find_word(word, words, &choice);
  if (*out >= 0)
    return 0;
  const char *one = words[1] ? "one of " : "";
  return *word ? hk_usage(argv, "%s: want %s%s%s", word, one, choice.all, choice.meant)
               : hk_usage(argv, "want %s%s", one, choice.all);
}

int hk_finish_output(char **argv, int code)
{
  if (fflush(stdout) == 0 && !ferror(stdout))
    return code;
  return hk_failed(argv, "cannot write the output: %s", strerror(errno));
}
