/* Prints raised alerts of severity warning or above, outside of maintenance.
 *
 *   cc alerts.c $(pkg-config --cflags --libs hankel) -o alerts
 *   ./alerts 'plant*' [HOST:PORT]
 *
 * Exits with 1 when the connection ends and cannot be restored. */
#include <hankel.h>

#include <inttypes.h>
#include <stdio.h>

#define WAIT 5000 /* ms */

static void alerts_on_event(void *arg, const struct hankel_event *e)
{
  (void)arg;
  if (e->kind != HANKEL_RAISED || (e->marks & HANKEL_MAINTENANCE) || e->severity < HANKEL_WARNING)
    return;
  printf("%s:%" PRIu32 " is %s: %g -> %g\n", e->name, e->number, hankel_severity_name(e->severity), e->before, e->after);
  fflush(stdout);
}

int main(int argc, char **argv)
{
  struct hankel_options options = HANKEL_OPTIONS_DEFAULT;
  options.client = "the example alerts";
  options.callbacks.event = alerts_on_event;
  if (argc > 2)
    options.address = argv[2];
  hankel *h = hankel_open(&options);
  if (!h)
    return 1;
  int status = hankel_wait(h, WAIT);
  if (status == 0)
    status = hankel_subscribe(h, argc > 1 ? argv[1] : "", 0, HANKEL_EVENTS | HANKEL_DETAILS);
  if (status == 0)
    status = hankel_sync(h, WAIT);
  if (status == 0)
    fprintf(stderr, "alerts: subscribed\n");
  while (status == 0)
    status = hankel_step(h, -1);
  fprintf(stderr, "alerts: %s\n", hankel_error(h));
  hankel_close(h);
  return 1;
}
