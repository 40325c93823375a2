/* hankel replay: scores a recording without a daemon. It reads points into batches, of which several are in flight, and prints
 * results in the order of the points. The output does not depend on how points are divided into batches.
 *
 * A batch is submitted when it is full, when a sensor has HK_BATCH_PER_SENSOR points in it, or when the input pauses; then
 * everything is scored and printed first, so that a live pipe is followed point by point. */
#include "cpu/detectors.h"
#include "cpu/provisional/provisional.h"
#include "cpu/rules/segments.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/csv_input.h"
#include "daemon/cli/fielded.h"
#include "daemon/cli/format.h"
#include "daemon/cli/incident_report.h"
#include "daemon/cli/options.h"
#include "daemon/cli/progress.h"
#include "daemon/cli/replay_explain.h"
#include "proto/wire/event_message.h"
#include "proto/wire/message.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define IN_FLIGHT 8
#define BATCH_MAX 16384

static const char replay_help[] =
    "usage: hankel replay [OPTION...] FILE.csv...|FOLDER|-\n\n"
    "Scores a recording without a daemon. Prints sensor,time,value,score,state for every point and, after the\n"
    "point that caused it, #event,id,sensor,raised|corrected|cleared,time,instant,score,before,after.\n"
    "With several algorithms every line also has score_graph,state_graph of each further one, whose events are\n"
    "those of SENSOR#graph. Without --detector: ika, graph and novelty; scores of ika, events of the others.\n\n"
    "  --backend NAME     auto (default), cpu, cuda or reference\n"
    "  --detector KEYS    parameters, such as window=96,rank=3 (man hankeld.conf lists them)\n"
    "  --format NAME      csv (default) or jsonl\n"
    "  --budget N/day     print incidents instead, about N a day at most, as text or with --format jsonl;\n"
    "                     without --detector by novelty\n"
    "  --field KEYS       treat the sensors as a field: score SENSOR#residual, its reading less what its\n"
    "                     neighbours or, with operator=model, the equations of a line of pipes predict; or,\n"
    "                     with operator=focus, find changes that travel along a line (man hankeld.conf)\n"
    "  --interval SECONDS with --budget: time between points of a sensor; otherwise taken from the first lines\n" HK_INPUT_HELP
    "\n"
    "FILE has a header, a time column and value columns, or one number a line; it may be packed (.gz, .zst).\n"
    "With several files, sensors are named FILE.COLUMN. - is standard input.\n\n"
    "examples:\n"
    "  hankel replay machine.csv > scores.csv\n"
    "  hankel replay --detector window=48,alert=0.8 --format jsonl machine.csv | grep '\"event\"'\n"
    "  hankel replay --detector algorithm=graph,window=20 machine.csv | grep '^#event'\n"
    "  hankel replay --detector algorithm=ika,graph,shift,window=20 machine.csv\n"
    "  hankel replay --budget 10/day fleet.csv\n"
    "  hankel replay --field interval=1h,q=5 --detector algorithm=shift stations.csv | grep '^#event'\n"
    "  hankel replay --column pressure pump.csv | awk -F, '$4 > 0.5'\n";

/* What is remembered of a slot. */
struct past {
  struct hk_segments segments;
  const char *blamed;   /* of a field: the sensor to blame for the last raised alert; NULL: no other sensor */
  struct hk_event last; /* raised or corrected; of it what says to which segment the new one is like, or what was new */
};

struct replay {
  char **argv;
  struct hk_recordings *csv;
  struct hk_backend *backend;
  struct hk_batch *batches[IN_FLIGHT]; /* all of them */
  struct hk_batch *free[IN_FLIGHT];    /* those neither in flight nor being filled */
  struct hk_batch *filling;
  uint32_t n_free, in_flight;
  uint8_t *in_batch;                 /* points of each sensor in the batch being filled */
  struct past *past;                 /* by slot */
  struct hk_replayed_points *counts; /* by slot */
  struct hk_detector detectors[HK_ALGORITHMS];
  uint32_t shown;      /* algorithms whose scores are printed; of the others the events are */
  uint32_t algorithms; /* slot of sensor s and algorithm a: s * algorithms + a; those of a point are side by side in a batch */
  enum hk_format format;
  struct hk_fielded *field;           /* NULL: the sensors are scored, not the series of a field */
  struct hk_provisional *provisional; /* NULL: no detector wants provisional scores */
  struct hk_report *report;           /* NULL: points and events are printed; else incidents */
  uint64_t points;
};

static const char *replay_sensor_of(const struct replay *replay, uint32_t slot)
{
  return hk_replayed_sensor(replay->csv, replay->field, slot / replay->algorithms);
}

static const char *algorithm_of(const struct replay *replay, uint32_t slot)
{
  return hk_algorithm_name(replay->detectors[slot % replay->algorithms].algorithm);
}

/* Adds to an event which earlier segment the new one resembles, or what was new, as the daemon does. */
static void replay_compare(struct past *past, struct hk_event *event)
{
  if (hk_segments_concerns(event))
    hk_segments_take(&past->segments, event);
  if (hk_segments_concerns(event) || event->novelty.channel != 0) {
    past->last = *event;
  } else if (event->number == past->last.number) {
    event->novelty = past->last.novelty;
    event->similar = past->last.similar;
    event->similar_from = past->last.similar_from;
    event->likeness = past->last.likeness;
  }
}

/* Finds the sensor to blame for the alert of an event; NULL: no other sensor. */
static const char *blame(struct replay *replay, const struct hk_batch *batch, const struct hk_event *event)
{
  struct past *past = &replay->past[event->slot];
  if (replay->field && event->kind == HK_EVENT_RAISED)
    past->blamed = hk_fielded_blamed(replay->field, event->slot / replay->algorithms, batch->value[event->index]);
  return past->blamed;
}

static void replay_count(struct replay *replay, const struct hk_batch *batch)
{
  for (uint32_t i = 0; i < batch->n; i++) {
    struct hk_replayed_points *of = &replay->counts[batch->slot[i]];
    of->points++;
    of->late += batch->state[i] == HK_STATE_LATE;
    of->rejected += batch->state[i] == HK_STATE_REJECTED;
    of->scored |= !isnan(batch->score[i]);
  }
}

/* by: the sensor to blame, or the sensor where a change on a line began; NULL: neither. */
static void print_event(const struct replay *replay, const struct hk_event *event, const char *name, const char *by,
                        bool secondary)
{
  const struct hankel_event shown = hk_replayed_event(event, name, by, secondary);
  hk_print_event(stdout, replay->format, &shown);
}

/* Prints the changes that were found on a line until a time. */
static void print_changes(const struct replay *replay, int64_t time)
{
  const struct hk_event *change;
  const char *sensor;
  while (replay->field && (change = hk_fielded_change(replay->field, time, &sensor)))
    print_event(replay, change, HK_FIELDED_LINE, sensor, false);
}

static void print_batch(struct replay *replay, const struct hk_batch *batch)
{
  struct hk_event *event = batch->event, *last = event + batch->n_events;
  const uint32_t n = replay->algorithms;
  for (uint32_t i = 0; i < batch->n; i += n) {
    print_changes(replay, batch->time[i]);
    const struct hk_shown_result result = {
      replay_sensor_of(replay, batch->slot[i]), batch->time[i], true, batch->value[i], batch->score[i], batch->state[i]
    };
    struct hk_shown_further further[HK_COMPANIONS];
    for (uint32_t k = 1; k < n; k++)
      further[k - 1] = (struct hk_shown_further){ algorithm_of(replay, k), batch->score[i + k], batch->state[i + k] };
    hk_print_result(stdout, replay->format, &result, further, replay->shown - 1);
    for (; event < last && event->index < i + n; event++) {
      char name[HK_NAME_MAX + 32];
      const char *const blamed = blame(replay, batch, event);
      const bool first = event->slot % n == 0;
      const char *const apart = first ? "" : replay->field ? "." : "#"; /* SENSOR#residual.graph, SENSOR#graph */
      replay_compare(&replay->past[event->slot], event);
      snprintf(name, sizeof name, "%s%s%s", replay_sensor_of(replay, event->slot), apart,
               first ? "" : algorithm_of(replay, event->slot));
      print_event(replay, event, name, blamed, blamed != NULL);
    }
  }
}

/* Processes a time: the changes found on a line until then. Returns 0 or -ENOMEM. */
static int report_changes(const struct replay *replay, int64_t time)
{
  const struct hk_event *change;
  const char *sensor;
  int status = 0;
  hk_report_reach(replay->report, time);
  while (status == 0 && replay->field && (change = hk_fielded_change(replay->field, time, &sensor)))
    status = hk_report_event(replay->report, sensor, change);
  return status;
}

/* Passes points to the incidents, whose clock they are. Returns 0 or -ENOMEM. */
static int report_batch(struct replay *replay, const struct hk_batch *batch)
{
  const struct hk_event *event = batch->event, *last = event + batch->n_events;
  int status = 0;
  for (uint32_t i = 0; i < batch->n && status == 0; i++) {
    if (batch->state[i] != HK_STATE_LATE && batch->state[i] != HK_STATE_REJECTED)
      status = report_changes(replay, batch->time[i]);
    for (; event < last && event->index <= i && status == 0; event++)
      if (!blame(replay, batch, event))
        status = hk_report_event(replay->report, replay_sensor_of(replay, event->slot), event);
  }
  return status;
}

/* Reports why a recording gave no score: it is empty, too short or out of order. */
static void replay_explain(const struct replay *replay)
{
  const struct hk_replayed replayed = { .csv = replay->csv,
                                        .field = replay->field,
                                        .detectors = replay->detectors,
                                        .algorithms = replay->algorithms,
                                        .of = replay->counts };
  if (replay->points == 0)
    fprintf(stderr, "hankel replay: there are no points in it\n");
  hk_replayed_explain(&replayed);
}

static const struct hk_detector *replay_detector_of(void *arg, uint32_t slot)
{
  const struct replay *replay = arg;
  return &replay->detectors[slot % replay->algorithms];
}

/* Waits for the oldest batch in flight and prints it. Returns 0 or an exit code. */
static int replay_take_back(struct replay *replay)
{
  replay->backend->ops->wait(replay->backend);
  struct hk_batch *batch = replay->backend->ops->reap(replay->backend);
  if (!batch)
    return hk_failed(replay->argv, "the %s backend lost a batch", replay->backend->ops->name);
  replay->in_flight--;
  if (batch->status < 0)
    return hk_failed(replay->argv, "the %s backend failed: %s", replay->backend->ops->name, strerror(-batch->status));
  const struct hk_provisional_sensors sensors = { replay, replay_detector_of, NULL };
  if (replay->provisional && hk_provisional_complete(replay->provisional, &sensors, batch) != 0)
    return hk_failed(replay->argv, "out of memory");
  replay_count(replay, batch);
  if (!replay->report)
    print_batch(replay, batch);
  else if (report_batch(replay, batch) != 0)
    return hk_failed(replay->argv, "out of memory");
  replay->free[replay->n_free++] = batch;
  return ferror(stdout) ? hk_failed(replay->argv, "cannot write the output: %s", strerror(errno)) : 0;
}

/* Submits the current batch unless it is empty. Returns 0 or an exit code. */
static int replay_hand_over(struct replay *replay)
{
  struct hk_batch *batch = replay->filling;
  if (!batch || batch->n == 0)
    return 0;
  for (uint32_t i = 0; i < batch->n; i++)
    replay->in_batch[batch->slot[i]] = 0;
  const int status = replay->backend->ops->submit(replay->backend, batch);
  if (status != 0)
    return hk_failed(replay->argv, "the %s backend refused a batch: %s", replay->backend->ops->name,
                     status < 0 ? strerror(-status) : "no place");
  replay->points += batch->n;
  replay->filling = NULL;
  replay->in_flight++;
  return 0;
}

/* Submits and prints everything. Returns 0 or an exit code. */
static int catch_up(struct replay *replay)
{
  int code = replay_hand_over(replay);
  while (code == 0 && replay->in_flight > 0)
    code = replay_take_back(replay);
  return code;
}

static int replay_put(struct replay *replay, uint32_t sensor, int64_t time, double value)
{
  const uint32_t first = sensor * replay->algorithms;
  int code = 0;
  if (replay->filling &&
      (replay->filling->capacity - replay->filling->n < replay->algorithms || replay->in_batch[first] == HK_BATCH_PER_SENSOR))
    code = replay_hand_over(replay);
  if (code == 0 && !replay->filling && replay->n_free == 0)
    code = replay_take_back(replay);
  if (code != 0)
    return code;
  if (!replay->filling) {
    replay->filling = replay->free[--replay->n_free];
    replay->filling->n = 0;
  }
  struct hk_batch *batch = replay->filling;
  for (uint32_t slot = first; slot < first + replay->algorithms; slot++) {
    batch->slot[batch->n] = slot;
    batch->time[batch->n] = time;
    const uint8_t rate = replay->detectors[slot % replay->algorithms].rate;
    batch->value[batch->n++] = rate ? hk_rate_next(&replay->counts[slot].rate, rate, time, value) : value;
    replay->in_batch[slot]++;
  }
  return 0;
}

/* Takes a point of a sensor. */
static int replay_take(struct replay *replay, uint32_t sensor, int64_t time, double value)
{
  struct hk_fielded_point made;
  int code = 0;
  if (!replay->field)
    return replay_put(replay, sensor, time, value);
  hk_fielded_put(replay->field, sensor, time, value);
  while (code == 0 && hk_fielded_next(replay->field, &made))
    code = replay_put(replay, made.sensor, made.time, made.value);
  return code;
}

static void replay_print_header(const struct replay *replay)
{
  struct hk_shown_further further[HK_COMPANIONS] = { { 0 } };
  for (uint32_t k = 1; k < replay->shown; k++)
    further[k - 1].algorithm = algorithm_of(replay, k);
  hk_print_header(stdout, replay->format, true, further, replay->shown - 1);
}

static int replay_run(struct replay *replay)
{
  struct hk_csv_row row;
  char error[512];
  int status = 0, code = 0;
  struct hk_progress_line progress = hk_progress_start(true);
  if (!replay->report)
    replay_print_header(replay);
  while (code == 0) {
    if (!hk_recording_ready(replay->csv)) {
      code = catch_up(replay);
      fflush(stdout);
    }
    if (code != 0 || (status = hk_recording_next(replay->csv, &row, error, sizeof error)) <= 0)
      break;
    if (replay->report)
      hk_report_row(replay->report, row.time);
    for (uint32_t i = 0; i < row.n && code == 0; i++)
      code = replay_take(replay, row.sensor[i], row.time, row.value[i]);
    hk_progress_show(&progress, hk_recording_progress(replay->csv), replay->points);
  }
  if (code == 0)
    code = catch_up(replay); /* results before a bad line are still of use */
  hk_progress_end(&progress);
  if (code == 0 && status < 0)
    code = hk_failed(replay->argv, "%s", error);
  else if (code == 0)
    replay_explain(replay);
  if (code == 0 && replay->report)
    hk_report_finish(replay->report);
  if (code == 0 && replay->field)
    hk_fielded_explain(replay->field);
  return hk_finish_output(replay->argv, code);
}

static unsigned long long replay_need(const struct replay *replay, uint32_t sensors)
{
  unsigned long long bytes = 0;
  for (uint32_t i = 0; i < replay->algorithms; i++)
    bytes += replay->backend->ops->need(replay->backend, i, sensors);
  return bytes;
}

/* Opens the backend with one slot for each sensor and algorithm, and makes the batches. Returns 0 or an exit code. */
static int replay_start(struct replay *replay, int choice)
{
  const uint32_t n = replay->algorithms, slots = hk_recording_sensors(replay->csv) * n;
  const struct hk_backend_config config = {
    .detectors = replay->detectors, .n_detectors = n, .max_sensors = slots, .in_flight = IN_FLIGHT
  };
  const uint32_t capacity = slots < BATCH_MAX / HK_BATCH_PER_SENSOR ? slots * HK_BATCH_PER_SENSOR : BATCH_MAX;
  char error[512];
  if (hk_choose_backend(&replay->backend, choice, &config, error, sizeof error) < 0)
    return hk_failed(replay->argv, "%s", error);
  for (uint32_t slot = 0; slot < slots; slot++) {
    const char *name = replay_sensor_of(replay, slot); /* each algorithm gives the results that it gives alone */
    if (replay->backend->ops->add(replay->backend, slot, slot % n, hk_seed(name, strlen(name))) != 0)
      return hk_failed(replay->argv, "no memory for %u sensors: they need %llu bytes", slots / n, replay_need(replay, slots / n));
  }
  for (uint32_t i = 0; i < n && !replay->provisional; i++)
    if (replay->detectors[i].provisional && hk_provisional_new(&replay->provisional) != 0)
      return hk_failed(replay->argv, "out of memory");
  replay->in_batch = calloc(slots, 1);
  replay->past = calloc(slots, sizeof *replay->past);
  replay->counts = calloc(slots, sizeof *replay->counts);
  for (uint32_t i = 0; i < IN_FLIGHT; i++) {
    replay->batches[i] = hk_batch_new(replay->backend, capacity);
    if (!replay->batches[i] || !replay->in_batch || !replay->past || !replay->counts)
      return hk_failed(replay->argv, "out of memory");
    replay->free[replay->n_free++] = replay->batches[i];
  }
  return 0;
}

static void stop(struct replay *replay)
{
  if (replay->backend) {
    while (replay->in_flight > 0) {
      replay->backend->ops->wait(replay->backend);
      replay->in_flight = replay->backend->ops->reap(replay->backend) ? replay->in_flight - 1 : 0;
    }
    for (uint32_t i = 0; i < IN_FLIGHT; i++)
      hk_batch_free(replay->batches[i]);
    replay->backend->ops->close(replay->backend);
  }
  hk_provisional_free(replay->provisional);
  hk_report_free(replay->report);
  hk_fielded_close(replay->field);
  free(replay->in_batch);
  free(replay->past);
  free(replay->counts);
  hk_recording_close(replay->csv);
}

/* Opens the detector, the recording, the field and the report that the options ask for. Returns 0 or the exit code. */
static int open_all(struct replay *r, struct hk_input *input, struct hk_report_rules *rules, const char *keys, const char *field,
                    bool jsonl, int argc)
{
  char error[512];
  const int n = hk_detectors_parse(keys            ? keys
                                   : rules->wanted ? "algorithm=novelty"
                                                   : HK_DETECTORS_UNTUNED,
                                   r->detectors, error, sizeof error);
  if (n < 0)
    return hk_usage(r->argv, "--detector: %s", error);
  r->algorithms = (uint32_t)n;
  r->shown = keys ? r->algorithms : 1; /* the default columns remain, unless others were requested */
  int code = hk_input_open(input, argc, r->argv, &r->csv);
  if (code == 0 && !hk_recording_sensors_known(r->csv))
    code = hk_failed(r->argv, "--long needs a file, not a pipe: all sensors must be known before the first point");
  if (code == 0 && field)
    code = hk_fielded_open(&r->field, r->argv, field, r->csv);
  for (uint32_t i = 0; r->field && i < r->algorithms; i++)
    r->detectors[i].rate = HK_RATE_NO; /* derived series are not counters, as in the daemon */
  if (code == 0 && rules->wanted)
    code = hk_report_new(&r->report, r->argv, rules, r->csv, jsonl);
  return code;
}

static const struct option options[] = {
  { "backend", required_argument, NULL, 'b' },
  { "detector", required_argument, NULL, 'd' },
  { "format", required_argument, NULL, 'f' },
  { "budget", required_argument, NULL, 'B' },
  { "interval", required_argument, NULL, 'i' },
  { "field", required_argument, NULL, 'F' },
  HK_INPUT_OPTIONS,
  { "help", no_argument, NULL, 'h' },
  { 0 },
};

int hk_command_replay(int argc, char **argv)
{
  static const char *const formats[] = { "csv", "jsonl", NULL };
  struct hk_input input = { 0 };
  struct replay replay = { .argv = argv, .format = HK_FORMAT_CSV };
  struct hk_report_rules rules = { 0 };
  const char *keys = NULL, *field = NULL;
  int option, format = -1, choice = 0, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'b':
      code = hk_option_word(argv, "--backend", optarg, hk_choices, &choice);
      break;
    case 'd':
      keys = optarg;
      break;
    case 'f':
      if ((code = hk_option_word(argv, "--format", optarg, formats, &format)) == 0)
        replay.format = format == 0 ? HK_FORMAT_CSV : HK_FORMAT_JSONL;
      break;
    case 'B':
      code = hk_report_budget(argv, optarg, &rules);
      break;
    case 'F':
      field = optarg;
      break;
    case 'i':
      code = hk_report_interval(argv, optarg, &rules);
      break;
    case HK_OPTION_HELP:
      fputs(replay_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      code = hk_input_option(&input, argv, option, optarg);
    }
    if (code != 0)
      return code;
  }
  if (!rules.wanted && rules.interval > 0)
    return hk_usage(argv, "--interval needs --budget");
  if (rules.wanted && format == 0)
    return hk_usage(argv, "--budget prints text or jsonl, not csv");
  code = open_all(&replay, &input, &rules, keys, field, format == 1, argc);
  if (code == 0)
    code = replay_start(&replay, choice);
  if (code == 0)
    code = replay_run(&replay);
  stop(&replay);
  return code;
}
