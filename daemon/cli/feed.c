/* hankel feed: sends a recording, or standard input, to the daemon.
 *
 * Points go into the client library's buffer; when it is full, or when the input pauses, the buffer is sent. At the end the
 * daemon must confirm that it has taken over every point; otherwise the exit code is 1. When the connection breaks, the
 * library reconnects; feed reports points that may be lost, and exits with 1. With --feed none can be: unacknowledged points
 * are sent again, and points that the daemon has from an earlier run of the command are left out. */
#include "cpu/monotonic.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/csv_input.h"
#include "daemon/cli/daemon_link.h"
#include "daemon/cli/host.h"
#include "daemon/cli/options.h"
#include "daemon/cli/progress.h"
#include "daemon/cli/tls_options.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define SLICE 200      /* ms: how long one waiting call to the library lasts */
#define FAREWELL 30000 /* ms that the daemon has at the end to score waiting points */
#define MOST_TOLD 10   /* maximum number of the daemon's messages to print */

static const char feed_help[] =
    "usage: hankel feed [OPTION...] FILE.csv...|FOLDER|-\n\n"
    "Sends a recording, or standard input, to the daemon. Each value column is a sensor.\n"
    "Prints how many points were late (not after the sensor's last one) or rejected. Exits with 0 if the daemon has\n"
    "confirmed every point, and most were neither late nor rejected.\n\n"
    "  --to HOST:PORT     the daemon's binary listener (default " HK_LINK_ADDRESS ")\n" HK_INPUT_HELP
    "  --now              use the time of reading instead of the file's times: for live data\n"
    "  --rate X           send X points a second; with an x (60x), X times as fast as the times in the file\n"
    "  --host             no file: this machine's processor, memory, disks, network and pressure, once a second, as\n"
    "                     HOST.cpu.busy, HOST.memory.used and so on; --prefix gives another name than the machine's\n"
    "  --fast             send as fast as the daemon takes the points (default)\n"
    "  --feed NAME        each point counts once, even if feed or the daemon restarts: points of this feed that\n"
    "                     the daemon has, counted from the first point of FILE, are skipped\n" HK_SECURE_HELP "\n"
    "FILE has a header, a time column and value columns, or is one number a line; it may be packed (.gz, .zst).\n"
    "With several files, sensors are named FILE.COLUMN. - is standard input.\n\n"
    "examples:\n"
    "  hankel feed machine.csv\n"
    "  hankel feed --host                            this machine's figures, live\n"
    "  hankel feed --rate 60x machine.csv            an hour's recording in a minute\n"
    "  my-logger | hankel feed --now --sensor boiler -\n"
    "                                                numbers, sent as they arrive\n";

struct feed {
  char **argv;
  hankel *h;
  struct hk_recordings *csv;
  struct hk_host *host; /* instead of a recording: figures of this machine; otherwise NULL */
  uint32_t *sensor;     /* the library's number of each sensor of the file */
  uint32_t sensors;     /* of them */
  struct hk_progress_line progress;
  const char *name; /* of the feed; NULL: none */
  uint64_t there;   /* points of the feed that the daemon already has, which are left out */
  uint64_t points, in_doubt, errors, told;
  double rate; /* points a second, or times real time; 0 = as fast as it goes */
  bool real_time;
  bool finishing;  /* all points were sent, and the daemon is ending the connection */
  int64_t lost;    /* ns, hk_monotonic: since when there is no connection; 0 = there is one */
  int64_t started; /* ns, hk_monotonic: when the first point was sent */
  int64_t first;   /* ns: its time */
};

static bool feed_tell(struct feed *feed)
{
  hk_progress_end(&feed->progress);
  if (feed->told == MOST_TOLD)
    hk_failed(feed->argv, "more of these are not shown");
  return feed->told++ < MOST_TOLD;
}

static void feed_on_connected(void *arg, const char *server)
{
  struct feed *feed = arg;
  (void)server;
  if (feed->lost && feed_tell(feed))
    hk_failed(feed->argv, "connected again");
  feed->lost = 0;
}

static void feed_on_disconnected(void *arg, uint64_t in_doubt, const char *reason)
{
  struct feed *feed = arg;
  if (feed->finishing)
    return;
  feed->in_doubt += in_doubt;
  if (!feed->lost) {
    feed->lost = hk_monotonic();
    if (feed->name && feed_tell(feed))
      hk_failed(feed->argv, "the connection is lost: %s; trying again", reason);
    else if (!feed->name && feed_tell(feed))
      hk_failed(feed->argv, "the connection is lost: %s; %" PRIu64 " points may not have arrived; trying again", reason,
                in_doubt);
  }
}

static void on_refused(void *arg, const char *name, int refusal)
{
  struct feed *feed = arg;
  if (feed_tell(feed))
    hk_failed(feed->argv, "the daemon refuses sensor %s: %s", name, hankel_refusal_name(refusal));
}

static void feed_on_error(void *arg, int code, const char *message)
{
  struct feed *feed = arg;
  feed->errors++;
  if (feed_tell(feed))
    hk_failed(feed->argv, "the daemon says: %s (%s)", message, hankel_error_name(code));
}

/* Returns 0, or an exit code if the daemon has been away for too long. status: of the library. */
static int still_there(struct feed *feed, int status)
{
  if (status == -EACCES || status == -EPERM) /* our credentials are wrong, or do not allow this */
    return hk_failed(feed->argv, "%s", hankel_error(feed->h));
  if (status < 0 && status != -ETIMEDOUT && status != -EAGAIN && !feed->lost && hankel_connected(feed->h))
    return hk_failed(feed->argv, "%s", hankel_error(feed->h));
  if (feed->lost && hk_monotonic() - feed->lost > (int64_t)HK_LINK_PATIENCE * 1000000)
    return hk_failed(feed->argv, "the daemon did not come back: %s", hankel_error(feed->h));
  return 0;
}

/* Sends the buffered points; with `confirm`, waits until the daemon has taken over all of them. Returns 0 or an exit code. */
static int feed_flush(struct feed *feed, bool confirm)
{
  for (;;) {
    const int status = confirm ? hankel_sync(feed->h, SLICE) : hankel_flush(feed->h, SLICE);
    if (status == 0)
      return 0;
    const int code = still_there(feed, status);
    if (code != 0)
      return code;
    if (feed->lost)
      poll(NULL, 0, 10); /* the library may return at once while it waits to reconnect */
  }
}

/* Waits for input, and serves the connection meanwhile. Returns 0 or an exit code. */
static int wait_for_input(struct feed *feed)
{
  int code = feed_flush(feed, false);
  while (code == 0) {
    const int timeout = hankel_timeout(feed->h);
    struct pollfd polled[] = { { hk_recording_fd(feed->csv), POLLIN, 0 }, { hankel_fd(feed->h), hankel_events(feed->h), 0 } };
    if (poll(polled, 2, timeout) < 0 && errno != EINTR)
      return hk_failed(feed->argv, "poll: %s", strerror(errno));
    code = still_there(feed, hankel_step(feed->h, 0));
    if (polled[0].revents)
      break;
  }
  return code;
}

/* Waits until a point of time `time` is due. Returns 0 or an exit code. */
static int feed_pace(struct feed *feed, int64_t time)
{
  const double after = feed->real_time ? (double)(time - feed->first) : (double)feed->points * 1e9;
  const double due = (double)feed->started + after / feed->rate;
  int code = 0;
  for (double left; code == 0 && (left = due - (double)hk_monotonic()) > 0;) {
    code = feed_flush(feed, false);
    if (code == 0 && (left = due - (double)hk_monotonic()) >= 1e6)
      code = still_there(feed, hankel_step(feed->h, left > SLICE * 1e6 ? SLICE : (int)(left / 1e6)));
    else if (code == 0)
      poll(NULL, 0, 1);
  }
  return code;
}

static int send_point(struct feed *feed, uint32_t sensor, int64_t time, double value)
{
  if (feed->there > 0) {
    feed->there--;
    return 0;
  }
  for (;;) {
    const int status = hankel_send(feed->h, sensor, time, value);
    if (status == 0) {
      feed->points++;
      return 0;
    }
    if (status != -EAGAIN)
      return hk_failed(feed->argv, "%s", hankel_error(feed->h));
    const int code = still_there(feed, hankel_step(feed->h, SLICE));
    if (code != 0)
      return code;
  }
}

/* Registers new sensors: all at first; those of a long recording on a pipe as they appear. Returns 0 or an exit code. */
static int name_sensors(struct feed *feed)
{
  const uint32_t n = feed->host ? hk_host_sensors(feed->host) : hk_recording_sensors(feed->csv);
  if (n == feed->sensors)
    return 0;
  uint32_t *grown = realloc(feed->sensor, n * sizeof *grown);
  if (!grown)
    return hk_failed(feed->argv, "out of memory");
  feed->sensor = grown;
  for (; feed->sensors < n; feed->sensors++) {
    const char *name = feed->host ? hk_host_name(feed->host, feed->sensors) : hk_recording_sensor(feed->csv, feed->sensors);
    const int number = hankel_sensor(feed->h, name);
    if (number < 0)
      return hk_failed(feed->argv, "sensor %s: %s", name,
                       number == -EINVAL ? "the name is too long or not valid UTF-8" : strerror(-number));
    feed->sensor[feed->sensors] = (uint32_t)number;
  }
  return 0;
}

/* Serves the connection until `due` (ns, hk_monotonic). Returns 0 or an exit code. */
static int wait_until(struct feed *feed, int64_t due)
{
  int code = feed_flush(feed, false);
  for (int64_t left; code == 0 && (left = due - hk_monotonic()) > 0;) {
    const int ms = left > SLICE * 1000000ll ? SLICE : (int)(left / 1000000) + 1;
    code = still_there(feed, hankel_step(feed->h, ms));
    if (code == 0 && feed->lost)
      poll(NULL, 0, 10);
  }
  return code;
}

/* Sends figures of this machine once a second, on the second, until it is interrupted. Returns an exit code. */
static int run_host(struct feed *feed)
{
  int64_t due = hk_monotonic();
  uint64_t looks = 0;
  for (int code = 0;; due += SECOND) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* no error is possible */
    const int status = hk_host_look(feed->host, hk_monotonic());
    if (status < 0)
      return hk_failed(feed->argv, "--host: %s",
                       status == -ENOENT ? "there is no /proc/stat and no /proc/meminfo" : strerror(-status));
    code = name_sensors(feed);
    for (uint32_t i = 0; i < hk_host_figures(feed->host) && code == 0; i++) {
      double value;
      const uint32_t sensor = hk_host_sensor(feed->host, i, &value);
      code = send_point(feed, feed->sensor[sensor], (int64_t)now.tv_sec * SECOND, value);
    }
    if (code == 0 && ++looks == 2) /* from now on, counters give rates */
      fprintf(stderr, "hankel feed: %u figures of this machine go out once a second, such as %s, until this is interrupted\n",
              hk_host_figures(feed->host), hk_host_name(feed->host, 0));
    if (code == 0)
      code = wait_until(feed, due + SECOND);
    if (code != 0)
      return code;
  }
}

/* Sends everything. Returns 0 or an exit code. */
static int feed_run(struct feed *feed)
{
  struct hk_csv_row row;
  char error[512];
  int status = 0, code = 0;
  while (code == 0) {
    if (!hk_recording_ready(feed->csv))
      code = wait_for_input(feed);
    if (code != 0 || (status = hk_recording_next(feed->csv, &row, error, sizeof error)) <= 0)
      break;
    if ((code = name_sensors(feed)) != 0)
      break;
    if (feed->points == 0) {
      feed->started = hk_monotonic();
      feed->first = row.time;
    }
    for (uint32_t i = 0; i < row.n && code == 0; i++) {
      if (feed->rate > 0 && feed->there == 0)
        code = feed_pace(feed, row.time);
      if (code == 0)
        code = send_point(feed, feed->sensor[row.sensor[i]], row.time, row.value[i]);
    }
    hk_progress_show(&feed->progress, hk_recording_progress(feed->csv), feed->points);
  }
  if (code == 0)
    code = feed_flush(feed, true);
  hk_progress_end(&feed->progress);
  if (code == 0 && status < 0)
    code = hk_failed(feed->argv, "%s", error);
  return code;
}

/* Reports how many points were late or rejected. Returns `code`, or HK_EXIT_FAILED if most were. */
static int feed_tell_left_out(struct feed *feed, int code)
{
  struct hankel_counters counters;
  feed->finishing = true;
  if (hankel_finish(feed->h, FAREWELL) < 0) {
    fprintf(stderr, "hankel feed: the daemon is still scoring: the number of late and rejected points is unknown\n");
    return code;
  }
  hankel_count(feed->h, &counters);
  if (!counters.counted)
    fprintf(stderr, "hankel feed: this version of the daemon does not report late and rejected points\n");
  if (counters.late > 0)
    printf("%" PRIu64 " %s late (not after the last one of their sensor: sent before, or out of order)\n", counters.late,
           counters.late == 1 ? "point was" : "points were");
  if (counters.rejected > 0)
    printf(
        "%" PRIu64
        " %s rejected (not finite, too large, before 1970, ahead of the daemon's clock, or of a counter with no value before)\n",
        counters.rejected, counters.rejected == 1 ? "point was" : "points were");
  if (counters.late + counters.rejected > feed->points / 2)
    code = hk_failed(feed->argv, "most of the points were late or rejected");
  return code;
}

static int summary(struct feed *feed, int code)
{
  const double seconds = (double)(hk_monotonic() - feed->started) / 1e9;
  struct hankel_counters counters;
  hankel_count(feed->h, &counters);
  if (code != 0 && !hankel_connected(feed->h)) /* what was taken is not known */
    return code;
  if (feed->points > 0)
    printf("%" PRIu64 " points of %u sensor%s in %.3f s: %.0f points a second\n", feed->points, hk_recording_sensors(feed->csv),
           hk_recording_sensors(feed->csv) > 1 ? "s" : "", seconds, (double)feed->points / seconds);
  else
    puts("no points");
  if (hk_recording_bad(feed->csv) > 0)
    printf("bad cells and lines that were left out: %" PRIu64 "\n", hk_recording_bad(feed->csv));
  if (code == 0 && feed->in_doubt > 0)
    code = hk_failed(feed->argv, "%" PRIu64 " points may not have arrived", feed->in_doubt);
  if (code == 0 && counters.refused > 0)
    code = hk_failed(feed->argv, "%" PRIu64 " points were not taken: the daemon refused their sensors", counters.refused);
  if (code == 0 && feed->errors > 0)
    code = HK_EXIT_FAILED;
  if (feed->points > 0 && hankel_connected(feed->h))
    code = feed_tell_left_out(feed, code);
  return hk_finish_output(feed->argv, code);
}

static int feed_file(struct feed *feed, const char *address, const struct hankel_security *security)
{
  struct hankel_options link = HANKEL_OPTIONS_DEFAULT;
  link.callbacks = (struct hankel_callbacks){
    .connected = feed_on_connected, .disconnected = feed_on_disconnected, .refused = on_refused, .error = feed_on_error
  };
  link.arg = feed;
  link.security = *security;
  link.feed = feed->name;
  link.counts = 1;
  const int code = hk_link_open(&feed->h, feed->argv, address, &link);
  if (code != 0)
    return code;
  if (feed->name && (feed->there = hankel_feed_position(feed->h)) > 0)
    printf("the daemon has %" PRIu64 " points of %s already\n", feed->there, feed->name);
  if (feed->name && hankel_durability(feed->h) != HANKEL_JOURNALED)
    hk_failed(feed->argv, "the daemon keeps no journal (durability): its points may be lost when it restarts");
  const int named = feed->host ? 0 : name_sensors(feed);
  if (named != 0)
    return named;
  if (feed->host)
    return run_host(feed);
  feed->progress = hk_progress_start(false);
  return summary(feed, feed_run(feed));
}

/* "100" is points a second, "60x" is times real time. Returns 0 or HK_EXIT_USAGE. */
static int parse_rate(struct feed *feed, const char *text)
{
  char number[64];
  const size_t length = strlen(text);
  snprintf(number, sizeof number, "%s", text);
  feed->real_time = length > 1 && length < sizeof number && text[length - 1] == 'x';
  if (feed->real_time)
    number[length - 1] = 0;
  return hk_option_real(feed->argv, "--rate", number, 1e-6, 1e12, &feed->rate);
}

/* 0 or an exit code. */
static int feed_open_host(struct feed *feed, const struct hk_input *input, int argc)
{
  char name[256] = "host";
  const char *given = optind < argc ? "file" : feed->name ? "--feed" : feed->rate > 0 ? "--rate" : hk_input_given(input);
  if (given)
    return hk_usage(feed->argv, "--host takes no %s", given);
  if (input->prefix)
    snprintf(name, sizeof name, "%s", input->prefix);
  else if (gethostname(name, sizeof name - 1) != 0)
    return hk_failed(feed->argv, "this machine has no name: %s; --prefix gives one", strerror(errno));
  return hk_host_open(&feed->host, "/", name) == 0 ? 0 : hk_failed(feed->argv, "out of memory");
}

int hk_command_feed(int argc, char **argv)
{
  static const struct option options[] = {
    { "to", required_argument, NULL, 't' },   HK_INPUT_OPTIONS,
    { "rate", required_argument, NULL, 'r' }, { "fast", no_argument, NULL, 'f' },
    { "now", no_argument, NULL, 'n' },        { "host", no_argument, NULL, 'H' },
    { "feed", required_argument, NULL, 'N' }, HK_SECURE_OPTIONS,
    { "help", no_argument, NULL, 'h' },       { 0 },
  };
  const char *address = HK_LINK_ADDRESS;
  struct hk_input input = { 0 };
  struct hankel_security security = { 0 };
  struct feed feed = { .argv = argv };
  bool fast = false, host = false;
  int option, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 't':
      address = optarg;
      break;
    case 'r':
      code = parse_rate(&feed, optarg);
      break;
    case 'f':
      fast = true;
      break;
    case 'n':
      input.config.now = true;
      break;
    case 'H':
      host = true;
      break;
    case 'N':
      feed.name = optarg;
      code = *optarg ? 0 : hk_usage(argv, "--feed is empty");
      break;
    case HK_OPTION_HELP:
      fputs(feed_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      if (hk_secure_take(&security, option, optarg) != 0)
        code = hk_input_option(&input, argv, option, optarg);
    }
    if (code != 0)
      return code;
  }
  if (fast && feed.rate > 0)
    return hk_usage(argv, "--rate and --fast exclude each other");
  if (input.config.now && feed.real_time)
    return hk_usage(argv, "--now and a --rate by the times in the file exclude each other");
  code = host ? feed_open_host(&feed, &input, argc) : hk_input_open(&input, argc, argv, &feed.csv);
  if (code == 0)
    code = feed_file(&feed, address, &security);
  hankel_close(feed.h);
  free(feed.sensor);
  hk_recording_close(feed.csv);
  hk_host_close(feed.host);
  return code;
}
