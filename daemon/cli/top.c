/* hankel top: a live view of standing alerts and of the daemon's state, in the terminal. If standard output is no terminal, the
 * report is printed once, as plain text.
 *
 * The report is requested every second. The library reconnects after a lost connection; until then the last report is shown,
 * under a line that says so. */
#include "cpu/monotonic.h"
#include "daemon/cli/commands.h"

#include "daemon/cli/daemon_link.h"
#include "daemon/cli/options.h"
#include "daemon/cli/tls_options.h"
#include "daemon/cli/top_frame.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define EVERY 1000  /* ms between two reports */
#define ANSWER 1500 /* ms for one */
#define WIDE 160    /* columns where it is no terminal */

static const char top_help[] =
    "usage: hankel top [OPTION...]\n\n"
    "Shows standing alerts, the most severe first, and the daemon's health, live. q ends it. If standard output is\n"
    "not a terminal, prints them once, as plain text.\n\n"
    "  --from HOST:PORT   the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_SECURE_HELP "\n"
    "examples:\n"
    "  hankel top\n"
    "  hankel top | head -3\n";

/* A signal handler can reach globals only. */
static volatile sig_atomic_t interrupted;

static void top_on_signal(int signal)
{
  interrupted |= signal != SIGWINCH; /* that one only ends a wait */
}

struct top {
  struct hk_top_frame frame;
  cJSON *report;
  double in;  /* points in the report, as fed */
  int64_t at; /* ns, hk_monotonic: when it came */
  char lost[512];
};

/* Asks for a report. */
static void top_look(hankel *h, struct top *top)
{
  char *text = NULL;
  cJSON *report = hankel_status(h, &text, ANSWER) < 0 ? NULL : cJSON_Parse(text);
  free(text);
  if (!report) {
    snprintf(top->lost, sizeof top->lost, "%s", hk_link_error(h, top->frame.address));
    top->frame.lost = top->lost;
    top->frame.points = -1;
    top->at = 0;
    return;
  }
  const cJSON *derived = cJSON_GetObjectItem(cJSON_GetObjectItem(report, "derived"), "points");
  const double in = cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(report, "points"), "in")) -
                    (cJSON_IsNumber(derived) ? derived->valuedouble : 0);
  const int64_t now = hk_monotonic();
  top->frame.points = top->at > 0 && in >= top->in ? (in - top->in) * 1e9 / (double)(now - top->at) : -1;
  top->in = in;
  top->at = now;
  top->frame.lost = NULL;
  cJSON_Delete(top->report);
  top->report = report;
}

static void measure(struct hk_top_frame *f)
{
  struct winsize size;
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
  f->columns = known ? size.ws_col : 80;
  f->lines = known ? size.ws_row : 24;
  f->now = (int64_t)time(NULL);
}

/* Whether the program is to end: q, or Ctrl-C if keys are read one by one. Waits for the next report, a key or a signal. */
static bool wait_key(bool keys)
{
  struct pollfd in = { .fd = keys ? STDIN_FILENO : -1, .events = POLLIN };
  char key;
  if (poll(&in, 1, EVERY) <= 0 || !(in.revents & POLLIN))
    return (in.revents & POLLHUP) != 0;
  return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 3;
}

static int live(hankel *h, struct top *top)
{
  struct termios before, raw;
  const bool keys = tcgetattr(STDIN_FILENO, &before) == 0;
  const struct sigaction act = { .sa_handler = top_on_signal };
  for (const int *s = (const int[]){ SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0 }; *s; s++)
    (void)sigaction(*s, &act, NULL); /* cannot fail for these */
  if (keys) {
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw); /* else typed keys are shown, and q needs Enter */
  }
  fputs("\033[?1049h\033[?25l\033[2J", stdout);
  bool over = false;
  while (!over && !interrupted) {
    top_look(h, top);
    measure(&top->frame);
    hk_top_print(stdout, &top->frame, top->report);
    if (fflush(stdout) != 0)
      break;
    over = wait_key(keys);
  }
  fputs("\033[?25h\033[?1049l", stdout);
  (void)fflush(stdout); /* hk_finish_output looks */
  if (keys)
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before); /* nothing can be done about a failure */
  return HK_EXIT_DONE;
}

static int top_once(hankel *h, struct top *top, char **argv)
{
  top_look(h, top);
  if (!top->report)
    return hk_failed(argv, "no report from the daemon at %s: %s", top->frame.address, top->lost);
  top->frame.columns = WIDE;
  top->frame.now = (int64_t)time(NULL);
  hk_top_print(stdout, &top->frame, top->report);
  return HK_EXIT_DONE;
}

int hk_command_top(int argc, char **argv)
{
  static const struct option options[] = {
    { "from", required_argument, NULL, 'f' },
    HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },
    { 0 },
  };
  struct top top = { .frame = { .address = HK_LINK_ADDRESS, .points = -1, .ansi = isatty(STDOUT_FILENO) == 1 } };
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  hankel *h;
  int option, code;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    if (option == 'f') {
      top.frame.address = optarg;
    } else if (option == HK_OPTION_HELP) {
      fputs(top_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    } else if (hk_secure_take(&link.security, option, optarg) != 0) {
      return HK_EXIT_USAGE;
    }
  }
  if (optind != argc)
    return hk_usage(argv, "%s: unexpected argument", argv[optind]);
  link.once = !top.frame.ansi;
  code = hk_link_open(&h, argv, top.frame.address, &link);
  if (code != 0)
    return code;
  code = top.frame.ansi ? live(h, &top) : top_once(h, &top, argv);
  cJSON_Delete(top.report);
  hankel_close(h);
  return hk_finish_output(argv, code);
}
