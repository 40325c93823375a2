/* hankel: the command line of hankeld. Finds the subcommand and calls it. */
#include "cpu/suggest.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/options.h"

#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *what;
} commands[] = {
  { "feed", hk_command_feed, "send a recording, or standard input, to the daemon" },
  { "tail", hk_command_tail, "show scores and events as the daemon publishes them" },
  { "replay", hk_command_replay, "score a recording without a daemon" },
  { "top", hk_command_top, "show standing alerts and the daemon's health, live" },
  { "status", hk_command_status, "show whether the daemon is healthy, and its counters" },
  { "sensors", hk_command_sensors, "list sensors with their state, last value, score and threshold" },
  { "state", hk_command_state, "inspect and verify the daemon's state folder" },
  { "cluster", hk_command_cluster, "show what the machines of a cluster score" },
  { "reload", hk_command_reload, "reload the daemon's configuration" },
  { "ack", hk_command_ack, "acknowledge an alert, or judge an incident" },
  { "maintenance", hk_command_maintenance, "mark alerts of sensors under maintenance" },
  { "notify", hk_command_notify, "send a test message to a receiver of alerts" },
  { "token", hk_command_token, "make a token that authenticates a client" },
  { "model", hk_command_model, "simulate recordings of a line of pipes, or fit a model to them" },
  { "bench", hk_command_bench, "measure how fast this machine scores" },
  { "evaluate", hk_command_evaluate, "run detectors over labelled recordings and judge their alerts" },
};

static void help(FILE *out)
{
  fputs("usage: hankel COMMAND [OPTION...] [FILE]\n\n"
        "Finds change points in many sensors at once, with the daemon hankeld or alone.\n\n",
        out);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(out, "  %-13s%s\n", commands[i].name, commands[i].what);
  fputs("\nexamples:\n"
        "  hankel replay machine.csv                score every point of a CSV file\n"
        "  hankel feed machine.csv                  send it to the daemon on this machine\n"
        "  hankel tail --events                     show alerts as they are raised\n"
        "\nSee `hankel COMMAND --help`, and the manual: man hankel.\n",
        out);
}

static void no_such_command(const char *name)
{
  const char *names[sizeof commands / sizeof *commands + 1] = { "help" };
  size_t n = 1;
  for (; n <= sizeof commands / sizeof *commands; n++)
    names[n] = commands[n - 1].name;
  const char *meant = hk_suggest(name, names, n, sizeof *names);
  fprintf(stderr, "hankel: %s: no such command", name);
  if (meant)
    fprintf(stderr, "; did you mean %s?", meant);
  fputs(" (", stderr);
  for (size_t i = 1; i < n; i++)
    fprintf(stderr, "%s%s", i > 1 ? ", " : "", names[i]);
  fputs("; see hankel --help)\n", stderr);
}

int main(int argc, char **argv)
{
  char help_option[] = "--help";
  if (argc == 3 && strcmp(argv[1], "help") == 0) { /* hankel help COMMAND */
    argv[1] = argv[2];
    argv[2] = help_option;
  }
  const char *name = argc > 1 ? argv[1] : "";
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (strcmp(name, commands[i].name) == 0)
      return commands[i].run(argc - 1, argv + 1);
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    help(stdout);
    return HK_EXIT_DONE;
  }
  if (strcmp(name, "--version") == 0) {
    puts("hankel " HANKELD_VERSION);
    return HK_EXIT_DONE;
  }
  if (*name)
    no_such_command(name);
  else
    help(stderr);
  return HK_EXIT_USAGE;
}
