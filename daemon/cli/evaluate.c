/* hankel evaluate: its options. See evaluation.h. */
#include "daemon/cli/evaluation.h"

#include "cpu/detectors.h"
#include "daemon/cli/backend_option.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/options.h"
#include "daemon/cli/svg_sheet.h"

#include <stdio.h>
#include <string.h>

static const char evaluate_help[] =
    "usage: hankel evaluate [OPTION...] FOLDER|FILE.csv\n\n"
    "Runs detectors over labelled recordings and judges their alerts: labels hit, labels that as many alerts at\n"
    "random instants would hit, false alerts, also per 1,000 points, the delay in points (median), and, if\n"
    "labels are change points, the covering (1: all segments are exact).\n\n"
    "FOLDER holds any of these, each of them a collection:\n"
    "  nab/    CSV files, and windows.json: {\"FILE.csv\": [[\"FIRST TIME\", \"LAST TIME\"], ...], ...};\n"
    "          a window [\"FIRST TIME\", \"LAST TIME\", \"SENSOR\"] is of one sensor of the file\n"
    "  tssb/   files NAME.txt of plain numbers, and desc.txt with lines NAME,WINDOW,CHANGE,CHANGE,...\n"
    "  skab/   CSV files with a column changepoint that is 1 at a change\n"
    "FILE.csv is labelled by such a column, or by --labels; without labels all alerts are false.\n\n"
    "  --detector KEYS    parameters, such as algorithm=graph,window=20; may be repeated for another table;\n"
    "                     default: graph and novelty, as in hankel replay\n"
    "  --group KEYS       keys of a [group NAME] section: sensors of a file are one machine; files of one sensor\n"
    "                     are left out. An alert hits within five shortest parts\n"
    "  --field KEYS       compare sensors alone with sensors in a field, side by side; KEYS as in hankel replay.\n"
    "                     Alerts for which another sensor is to blame count as secondary only\n"
    "  --labels FILE      labels of FILE.csv, in the form of windows.json\n"
    "  --given-windows    use a collection's window for a recording (tssb has them), not a window key\n"
    "  --backend NAME     auto (default), cpu, cuda or reference\n"
    "  --tune KEY=V|V...  search these values, and all combinations with other --tune, on half of the files of\n"
    "                     each collection, and judge the best of them on the other half\n"
    "  --calibrate        also judge alerts by their severity, and whether severity keeps its promise; for nab\n"
    "                     also by that benchmark's scoring, with the detector's threshold and with the best one\n"
    "  --starts N         cut recordings into pieces of N points, each of them a sensor that begins there\n"
    "  --brief            only the totals of each collection\n"
    "  --plots FOLDER     also write nab.svg, tssb.svg and skab.svg there: series, labels, scores and alerts\n"
    "  --no-series        plots without the series, for recordings that may not be published\n"
    "  --format NAME      table (default) or csv\n\n"
    "examples:\n"
    "  hankel evaluate --detector algorithm=graph --given-windows recordings/\n"
    "  hankel evaluate --detector algorithm=ika --detector algorithm=graph --plots . recordings/\n"
    "  hankel evaluate --detector algorithm=shift --tune 'alert=0.3|0.4|0.5' --tune 'window=10|20|40' recordings/\n"
    "  hankel evaluate --field interval=1h,q=5 --detector algorithm=shift --labels faults.json stations.csv\n"
    "  hankel evaluate --brief --detector window=48 --detector window=96 recordings/\n"
    "  hankel evaluate --brief --starts 287 --detector provisional=yes recordings/\n";

/* Chooses default detectors if none was given, and checks that the options fit together. Returns 0 or the exit code. */
static int check_together(struct hk_evaluation *e)
{
  bool any_group = false;
  for (uint32_t i = 0; i < e->n_detectors; i++)
    any_group |= e->group[i];
  if (e->n_detectors == 0) { /* those of HK_DETECTORS_UNTUNED that raise alerts, one by one */
    e->detectors[e->n_detectors++] = "algorithm=graph," HK_UNTUNED_GRAPH("");
    e->detectors[e->n_detectors++] = "algorithm=novelty," HK_UNTUNED_NOVELTY("");
  }
  if (e->plots && (e->tuning.n > 0 || any_group))
    return hk_usage(e->trial.argv, "--plots: not with --tune or --group");
  if (e->plots && e->n_detectors > HK_SHEET_DETECTORS)
    return hk_usage(e->trial.argv, "--plots: of at most %d detectors", HK_SHEET_DETECTORS);
  if (e->calibrate && e->tuning.n > 0)
    return hk_usage(e->trial.argv, "--calibrate: not with --tune");
  if (e->field && (any_group || e->calibrate || e->plots || e->starts > 0))
    return hk_usage(e->trial.argv, "--field: not with --group, --calibrate, --plots or --starts");
  return 0;
}

static int add_detector(struct hk_evaluation *e, bool group)
{
  if (e->n_detectors == HK_EVALUATED_MAX)
    return hk_usage(e->trial.argv, "--detector and --group: over %d of them", HK_EVALUATED_MAX);
  e->group[e->n_detectors] = group;
  e->detectors[e->n_detectors++] = optarg;
  return 0;
}

static int add_tuned(struct hk_evaluation *e)
{
  if (e->tuning.n == HK_TUNED_MAX)
    return hk_usage(e->trial.argv, "--tune: over %d of them", HK_TUNED_MAX);
  if (!strchr(optarg, '='))
    return hk_usage(e->trial.argv, "--tune: %s: not KEY=VALUE|VALUE...", optarg);
  e->tuning.tuned[e->tuning.n++] = optarg;
  return 0;
}

static const struct option options[] = {
  { "backend", required_argument, NULL, 'b' },
  { "detector", required_argument, NULL, 'd' },
  { "given-windows", no_argument, NULL, 'g' },
  { "tune", required_argument, NULL, 't' },
  { "brief", no_argument, NULL, 'r' },
  { "format", required_argument, NULL, 'f' },
  { "plots", required_argument, NULL, 'p' },
  { "no-series", no_argument, NULL, 'n' },
  { "group", required_argument, NULL, 'm' },
  { "field", required_argument, NULL, 'F' },
  { "labels", required_argument, NULL, 'l' },
  { "calibrate", no_argument, NULL, 'c' },
  { "starts", required_argument, NULL, 's' },
  { "help", no_argument, NULL, 'h' },
  { 0 },
};

int hk_command_evaluate(int argc, char **argv)
{
  static const char *const formats[] = { "table", "csv", NULL };
  struct hk_evaluation e = { .trial.argv = argv };
  int option, code = 0;
  while ((option = hk_option_next(argc, argv, options)) != HK_OPTION_END) {
    switch (option) {
    case 'b':
      code = hk_option_word(argv, "--backend", optarg, hk_choices, &e.trial.choice);
      break;
    case 'd':
    case 'm':
      code = add_detector(&e, option == 'm');
      break;
    case 'F':
      e.field = optarg;
      break;
    case 'l':
      e.labels = optarg;
      break;
    case 'g':
      e.trial.given_windows = true;
      break;
    case 't':
      code = add_tuned(&e);
      break;
    case 'r':
      e.brief = true;
      break;
    case 'f':
      code = hk_option_word(argv, "--format", optarg, formats, &e.format);
      break;
    case 'p':
      e.plots = optarg;
      break;
    case 'n':
      e.no_series = true;
      break;
    case 's':
      code = hk_option_whole(argv, "--starts", optarg, 2, 1000000, &e.starts);
      break;
    case 'c':
      e.calibrate = true;
      break;
    case HK_OPTION_HELP:
      fputs(evaluate_help, stdout);
      return hk_finish_output(argv, HK_EXIT_DONE);
    default:
      code = HK_EXIT_USAGE;
    }
    if (code != 0)
      return code;
  }
  if (argc - optind != 1)
    return hk_usage(argv, argc == optind ? "no folder or file is given" : "more than one folder or file is given");
  e.folder = argv[optind];
  if ((code = check_together(&e)) != 0)
    return code;
  return hk_finish_output(argv, hk_evaluation_run(&e));
}
