/* Sends numbers from standard input to a sensor, one a line, each with the time when it is read:
 *
 *   cc feed.c $(pkg-config --cflags --libs hankel) -o feed
 *   my-logger | ./feed 'boiler temperature' [HOST:PORT]
 *
 * The library reconnects by itself when the daemon restarts. */
#include <hankel.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WAIT 5000 /* ms */

static int64_t feed_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int feed_failed(const hankel *h)
{
  fprintf(stderr, "feed: %s\n", hankel_error(h));
  return 1;
}

int main(int argc, char **argv)
{
  struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
  char line[128], *end;
  if (argc < 2) {
    fprintf(stderr, "usage: feed SENSOR [HOST:PORT]\n");
    return 2;
  }
  options.client = "the example feed";
  if (argc > 2)
    options.address = argv[2];
  hankel *h = hankel_open(&options);
  if (!h || hankel_wait(h, WAIT) < 0)
    return h ? feed_failed(h) : 1;
  const int sensor = hankel_sensor(h, argv[1]);
  if (sensor < 0)
    return feed_failed(h);
  while (fgets(line, sizeof line, stdin)) {
    const double value = strtod(line, &end);
    if (end == line)
      continue;
    while (hankel_send(h, (uint32_t)sensor, feed_now(), value) == -EAGAIN) /* the buffer is full */
      if (hankel_step(h, WAIT) < 0)
        return feed_failed(h);
    if (hankel_step(h, 0) < 0) /* sends as much as possible without waiting */
      return feed_failed(h);
  }
  const int status = hankel_sync(h, WAIT); /* waits until the daemon has taken over all points */
  const int code = status < 0 ? feed_failed(h) : 0;
  hankel_close(h);
  return code;
}
