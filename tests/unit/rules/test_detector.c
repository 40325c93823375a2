/* Detectors: keys, defaults, presets, ranges, and errors that name the key, the value and the allowed range. */
#include "cpu/detectors.h"
#include "cpu/duration.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct hk_detector parsed(const char *text)
{
  struct hk_detector d;
  char error[256] = "";
  if (hk_detector_parse(text, &d, error, sizeof error) != 0)
    fail_msg("\"%s\" was refused: %s", text, error);
  return d;
}

/* Asserts that it is refused, with every part of `says` (divided by |) in the message. */
static void refused(const char *text, const char *says)
{
  struct hk_detector d;
  char error[256] = "", words[256], *rest = words, *word;
  if (hk_detector_parse(text, &d, error, sizeof error) == 0)
    fail_msg("\"%s\" was taken", text);
  snprintf(words, sizeof words, "%s", says);
  while ((word = strsep(&rest, "|")))
    if (!strstr(error, word))
      fail_msg("\"%s\": the message lacks \"%s\": %s", text, word, error);
}

static void default_detector(void **state)
{
  (void)state;
  const struct hk_detector d = parsed("");
  assert_int_equal(d.algorithm, HK_ALGORITHM_IKA);
  assert_int_equal(d.present, HK_PRESENT_RITZ);
  assert_int_equal(d.operator_, HK_OPERATOR_HANKEL);
  assert_int_equal(d.scale, HK_SCALE_BASELINE);
  assert_int_equal(d.fill, HK_FILL_HOLD);
  assert_int_equal(d.alert, HK_ALERT_ADAPTIVE);
  assert_int_equal(d.reorthogonalise, 1);
  assert_int_equal(d.solver, HK_SOLVER_KRYLOV);
  assert_int_equal(parsed("algorithm=svd,solver=full").solver, HK_SOLVER_FULL);
  assert_int_equal(d.search, 0);
  assert_int_equal(d.window, 96);
  assert_int_equal(d.gap, 96);
  assert_int_equal(d.rank, 3);
  assert_int_equal(d.krylov, 10);
  assert_int_equal(d.products, 6);
  assert_int_equal(d.stride, 1);
  assert_int_equal(d.max_fill, 3);
  assert_int_equal(d.interval, 0);
  assert_int_equal(d.silent, 0);
  assert_int_equal(hk_detector_span(&d), 2 * 96 - 1 + 96);
}

static void defaults_follow_other_keys(void **state)
{
  (void)state;
  assert_int_equal(parsed("window=48").gap, 48);
  assert_int_equal(parsed("window=48,gap=7").gap, 7);
  /* krylov = min(4r - 2, 20, w), and always over the rank */
  static const struct {
    const char *text;
    uint32_t krylov;
  } cases[] = {
    { "rank=1", 2 },   { "rank=2", 6 },          { "rank=4", 14 },         { "rank=5", 18 },  { "rank=6", 20 },
    { "rank=19", 20 }, { "window=8,rank=3", 8 }, { "window=4,rank=3", 4 }, { "window=4", 4 }, { "window=5,rank=2", 5 }
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(parsed(cases[i].text).krylov, cases[i].krylov);
}

static void presets(void **state)
{
  (void)state;
  /* krylov of the paper: 2r for even r, 2r - 1 for odd, and over the rank */
  static const uint32_t krylov[] = { 0, 2, 4, 5, 8, 9, 12, 13, 16, 17, 20 };
  for (uint32_t r = 1; r <= 10; r++) {
    char text[64];
    snprintf(text, sizeof text, "preset=paper,rank=%u", r);
    assert_int_equal(parsed(text).krylov, krylov[r]);
  }
  const struct hk_detector paper = parsed("preset=paper,window=50");
  assert_int_equal(paper.present, HK_PRESENT_POWER);
  assert_int_equal(paper.operator_, HK_OPERATOR_HANKEL);
  assert_int_equal(paper.scale, HK_SCALE_NONE);
  assert_int_equal(paper.reorthogonalise, 0);
  assert_int_equal(paper.gap, 2 * 50 + 7);
  const struct hk_detector precise = parsed("preset=precise");
  assert_int_equal(precise.products, 8);
  assert_int_equal(precise.krylov, 16);
  assert_int_equal(precise.reorthogonalise, 1);
  /* a key that is given overrides the preset, before it or after it */
  assert_int_equal(parsed("gap=9,preset=paper").gap, 9);
  assert_int_equal(parsed("preset=paper,gap=9").gap, 9);
  assert_int_equal(parsed("preset=default,krylov=7").krylov, 7);
  assert_int_equal(parsed("preset=paper,reorthogonalise=yes").reorthogonalise, 1);
}

static void order_and_blanks(void **state)
{
  (void)state;
  const struct hk_detector a = parsed("window=20,rank=2,krylov=5,alert=0.75"),
                           b = parsed("  alert = 0.75 ,\tkrylov= 5,rank =2, window=20 ");
  assert_memory_equal(&a, &b, sizeof a);
  assert_int_equal(a.alert, HK_ALERT_FIXED);
  assert_true(a.threshold == 0.75f);
  const struct hk_detector plain = parsed(""), blank = parsed("   ");
  assert_memory_equal(&plain, &blank, sizeof plain);
}

static void whole_ranges(void **state)
{
  (void)state;
  static const struct {
    const char *key;
    long min, max;
    const char *with; /* other keys for which both limits are valid */
  } keys[] = {
    { "window", HK_WINDOW_MIN, HK_WINDOW_MAX, "" },
    { "gap", 1, HK_GAP_MAX, "" },
    { "rank", 1, HK_RANK_MAX, "" },
    { "krylov", 2, HK_KRYLOV_MAX, ",rank=1" },
    { "products", 1, HK_PRODUCTS_MAX, "" },
    { "stride", 1, HK_STRIDE_MAX, "" },
    { "max_fill", 0, HK_FILL_MAX, "" },
    { "cooldown", 0, 287, "" },
    { "baseline", 1, 1000, "" },
  };
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    char text[96], says[96];
    snprintf(says, sizeof says, "%s", keys[i].key);
    const long good[] = { keys[i].min, keys[i].max }, bad[] = { keys[i].min - 1, keys[i].max + 1, -5, 4294967296 + keys[i].min };
    for (size_t j = 0; j < 2; j++) {
      snprintf(text, sizeof text, "%s=%ld%s", keys[i].key, good[j], keys[i].with);
      (void)parsed(text);
    }
    for (size_t j = 0; j < 4; j++) {
      snprintf(text, sizeof text, "%s=%ld%s", keys[i].key, bad[j], keys[i].with);
      refused(text, says);
    }
    static const char *const odd[] = { "", "x", "7x", "7.5", "nan", "inf", "1e400", "0x1p70" };
    for (size_t j = 0; j < sizeof odd / sizeof *odd; j++) {
      snprintf(text, sizeof text, "%s=%s%s", keys[i].key, odd[j], keys[i].with);
      refused(text, says);
    }
  }
}

static void real_ranges(void **state)
{
  (void)state;
  static const char *const good[] = { "alert=1",     "alert=0.001",         "alert=adaptive",
                                      "alert=off",   "min_score=0",         "min_score=1",
                                      "clear=1",     "clear=0.01",          "signal=0",
                                      "signal=1000", "false_alarms=100000", "false_alarms=0.001" };
  static const char *const bad[] = { "alert=0",       "alert=1.01",  "alert=-1",       "alert=nan",         "alert=on",
                                     "min_score=-.1", "min_score=2", "clear=0",        "clear=1.5",         "signal=-1",
                                     "signal=1001",   "signal=nan",  "false_alarms=0", "false_alarms=1e-4", "false_alarms=1e9" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    (void)parsed(good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char key[32];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(bad[i], "="), bad[i]);
    refused(bad[i], key);
  }
}

static void messages(void **state)
{
  (void)state;
  refused("window=3", "window|3|4|1024");
  refused("algorithm=fft", "algorithm|fft|ika|svd|graph");
  refused("present=lanczos", "present|lanczos|ritz|power");
  refused("operator=toeplitz", "operator|toeplitz|hankel|gram");
  refused("scale=all", "scale|all|baseline|none|window");
  refused("fill=zero", "fill|zero|hold|linear");
  refused("preset=fast", "preset|fast|default|paper|precise");
  refused("windw=96", "windw|no such key");
  refused("Window=96", "Window");
  refused("window=96,window=97", "window|twice");
  refused("window", "window|key=value");
  refused("window=96,", "key=value");
  refused("interval=5parsecs", "interval|5parsecs|auto");
  refused("silent=often", "silent|often|off");
  refused("alert=2", "alert|2|adaptive");
  refused("rank=5,krylov=5", "krylov|5|6|20"); /* with k = r every score would be 0 */
  refused("window=8,rank=8", "rank|8");
  refused("window=6,krylov=7", "krylov|7|6");
  refused("present=power,products=5", "products|5|even");
  refused("operator=gram,products=7", "products|7|even");
  refused("window=10,gap=1,cooldown=21", "cooldown|21|20");
  (void)parsed("window=10,gap=1,cooldown=20");
  char longer[1100];
  memset(longer, ' ', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  refused(longer, "longer");
  /* a message is cut to the space given and always ends */
  struct hk_detector d;
  char tiny[8];
  memset(tiny, 'x', sizeof tiny);
  assert_int_not_equal(hk_detector_parse("window=3", &d, tiny, sizeof tiny), 0);
  assert_non_null(memchr(tiny, 0, sizeof tiny));
  assert_int_not_equal(hk_detector_parse("window=3", &d, NULL, 0), 0);
}

static void refused_leaves_the_result(void **state)
{
  (void)state;
  struct hk_detector d, before;
  memset(&d, 0x5a, sizeof d);
  before = d;
  char error[128];
  assert_int_not_equal(hk_detector_parse("window=20,rank=30", &d, error, sizeof error), 0);
  assert_memory_equal(&d, &before, sizeof d);
}

static void durations(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int64_t ns;
  } good[] = { { "1ns", 1 },
               { "250ms", 250000000 },
               { "3us", 3000 },
               { "5m", 300000000000 },
               { "90", 90000000000 },
               { "1.5s", 1500000000 },
               { "1h", 3600000000000 },
               { "2d", 172800000000000 },
               { "5 m", 300000000000 },
               { "0.5us", 500 },
               { "2hours", 7200000000000 },
               { "5min", 300000000000 },
               { "1 min 30 s", 90000000000 },
               { "1h30m", 5400000000000 },
               { "2 days, 3 hours and 1 second", 183601000000000 },
               { "1week", 604800000000000 },
               { "1.5 hours", 5400000000000 } };
  static const char *const bad[] = { "",     "s",   "5x",   "-1s",   "0",     "0.2ns", "nan",    "inf",  "1e400s", "300y",
                                     "1e11", "5mm", "1 30", "1m 2h", "1s 1s", "5M",    "1h and", "0x5s", "1h 30" };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    int64_t ns = 0;
    assert_int_equal(hk_duration_parse(good[i].text, &ns), 0);
    assert_int_equal(ns, good[i].ns);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    int64_t ns = 77;
    if (hk_duration_parse(bad[i], &ns) == 0)
      fail_msg("duration \"%s\" was taken as %lld ns", bad[i], (long long)ns);
    assert_int_equal(ns, 77);
  }
  assert_int_equal(parsed("interval=auto").interval, 0);
  assert_int_equal(parsed("interval=250ms").interval, 250000000);
  assert_int_equal(parsed("silent=off").silent, -1);
  assert_int_equal(parsed("silent=90").silent, 90000000000);
}

static void graph(void **state)
{
  (void)state;
  const struct hk_detector d = parsed("algorithm=graph");
  assert_int_equal(d.algorithm, HK_ALGORITHM_GRAPH);
  assert_true(d.search == 1);
  assert_int_equal(d.window, 136); /* the widest that may be found */
  assert_int_equal(d.resident, 1500);
  assert_int_equal(d.neighbours, 3);
  assert_int_equal(d.shortest, 5);
  assert_true(d.level == 0 && d.locality == 0 && parsed("algorithm=graph,locality=0").locality == 0);
  assert_true(parsed("algorithm=graph,locality=0.2").locality == 0.2f);
  assert_int_equal(d.stride, 0);
  assert_int_equal(d.alert, HK_ALERT_FIXED);
  assert_true(d.threshold == 0.5f);
  assert_int_equal(d.hold, 1);
  assert_int_equal(d.cooldown, 0);
  assert_int_equal(hk_detector_span(&d), 1503);
  assert_int_equal(
      hk_detector_span(&(const struct hk_detector){ .algorithm = HK_ALGORITHM_IKA, .window = 10, .gap = 3, .resident = 9 }), 22);
  assert_int_equal(parsed("window=120,algorithm=graph").resident, 1800);
  assert_int_equal(parsed("window=545,algorithm=graph").resident, 6000);
  assert_int_equal(parsed("algorithm=graph,window=8").stride, 2);
  (void)parsed("algorithm=graph,window=8,resident=88,neighbours=7,level=1000,alert=off,hold=3,cooldown=91,preset=default");
  (void)parsed("algorithm=graph,resident=6000,max_fill=64,level=0,alert=0.99,interval=1s,silent=off,fill=linear");
  const struct hk_detector found = parsed("algorithm=graph,window=auto"), given = parsed("algorithm=graph,window=20");
  assert_memory_equal(&found, &d, sizeof d);
  assert_true(given.search == 0 && given.window == 20 && given.stride == 5);
  assert_int_equal(parsed("window=auto,resident=88,stride=3,algorithm=graph").window, 8);
  assert_int_equal(parsed("window=auto,resident=88,stride=3,algorithm=graph").stride, 3);
}

static void graph_refusals(void **state)
{
  (void)state;
  refused("algorithm=graph,resident=87,window=auto", "resident|87|88");
  refused("window=auto", "window|auto|graph");
  refused("algorithm=graph,window=auto,window=20", "window|twice");
  refused("algorithm=graph,window=7", "window|7|from 8 to 545|graph");
  refused("algorithm=graph,window=546", "window|546|from 8 to 545");
  refused("algorithm=graph,window=20,resident=219", "resident|219|11 windows|220");
  refused("algorithm=graph,resident=6001", "resident|6001|6000");
  refused("algorithm=graph,solver=full", "solver|graph");
  refused("solver=full", "solver|svd");
  refused("algorithm=svd,solver=exact", "solver|exact|krylov, full");
  refused("algorithm=graph,neighbours=8", "neighbours|8|7");
  refused("algorithm=graph,neighbours=0", "neighbours|0|7");
  refused("algorithm=graph,shortest=1", "shortest|1|2|5");
  refused("algorithm=graph,shortest=6", "shortest|6|5");
  refused("algorithm=graph,level=-1", "level|-1|1000");
  refused("algorithm=graph,locality=-0.1", "locality|-0.1|100");
  refused("algorithm=graph,cooldown=1504", "cooldown|1504|1503");
  refused("algorithm=graph,alert=adaptive", "alert|adaptive|graph|0.5");
  refused("algorithm=graph,alert=1", "alert|below 1");
  refused("algorithm=graph,preset=paper", "preset|paper|graph");
  static const char *const others[] = { "gap=9",         "rank=2",          "krylov=9",   "products=6",
                                        "present=ritz",  "operator=hankel", "scale=none", "reorthogonalise=yes",
                                        "baseline=4",    "min_score=0.1",   "clear=0.5",  "signal=1",
                                        "false_alarms=5" };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[96], key[64];
    snprintf(text, sizeof text, "algorithm=graph,%s", others[i]);
    snprintf(key, sizeof key, "%.*s|graph|leave it out", (int)strcspn(others[i], "="), others[i]);
    refused(text, key);
  }
  refused("resident=1500", "resident|graph");
  refused("locality=0.2", "locality|graph");
  refused("algorithm=svd,neighbours=3", "neighbours|graph");
  refused("algorithm=shift,shortest=3", "shortest|shift");
  refused("level=0,algorithm=ika", "level|graph");
}

static void names(void **state)
{
  (void)state;
  assert_string_equal(hk_algorithm_name(HK_ALGORITHM_IKA), "ika");
  assert_string_equal(hk_algorithm_name(HK_ALGORITHM_SVD), "svd");
  assert_string_equal(hk_algorithm_name(HK_ALGORITHM_GRAPH), "graph");
  assert_string_equal(hk_algorithm_name(200), "?");
}

/* Several algorithms: each has the detector that it would have alone with the keys that apply to it. */
static void several(void **state)
{
  (void)state;
  struct hk_detector d[HK_ALGORITHMS];
  char error[256];
  assert_int_equal(
      hk_detectors_parse(
          "algorithm = ika, graph ,shift, window=40, gap=50, baseline=7, alert=0.3, graph.window=auto, shift.stride=3, "
          "shift.window=12, neighbours=4",
          d, error, sizeof error),
      3);
  const struct hk_detector alone[] = { parsed("algorithm=ika,window=40,gap=50,baseline=7,alert=0.3"),
                                       parsed("algorithm=graph,window=auto,alert=0.3,neighbours=4"),
                                       parsed("algorithm=shift,window=12,baseline=7,alert=0.3,stride=3") };
  for (int i = 0; i < 3; i++) {
    char differences[256];
    hk_detector_differences(&d[i], &alone[i], differences, sizeof differences);
    assert_string_equal(differences, "");
  }
  /* values that do not apply to an algorithm: it keeps its default */
  assert_int_equal(hk_detectors_parse("algorithm=svd,graph,alert=adaptive,window=auto,preset=paper", d, error, sizeof error), 2);
  assert_int_equal(d[0].algorithm, HK_ALGORITHM_SVD);
  assert_int_equal(d[0].alert, HK_ALERT_ADAPTIVE);
  assert_int_equal(d[0].window, 96);
  assert_int_equal(d[0].gap, 199);
  assert_int_equal(d[1].alert, HK_ALERT_FIXED);
  assert_int_equal(d[1].search, 1);
  assert_int_equal(hk_detectors_parse("", d, error, sizeof error), 1);
  assert_int_equal(hk_detectors_parse("ika.window=50", d, error, sizeof error), 1);
  assert_int_equal(d[0].window, 50);
  static const struct {
    const char *text, *says;
  } wrong[] = {
    { "algorithm=ika,ika", "twice" },
    { "algorithm=ika,", "not one of" },
    { "algorithm=ika,wave", "wave" },
    { "algorithm=ika,graph,algorithm=ika", "algorithm: given twice" },
    { "algorithm=ika,svd,resident=2000", "resident: has no effect on any" },
    { "algorithm=graph,shift,alert=adaptive", "alert: has no effect on any" },
    { "algorithm=graph,shift,preset=paper", "preset: has no effect on any" },
    { "algorithm=ika,graph,shift.window=20", "shift.window: algorithm = shift is not among" },
    { "algorithm=ika,graph,graph.rank=3", "graph: rank" },
    { "algorithm=ika,graph,graph.window=7", "graph: window = 7" },
    { "algorithm=ika,graph,graph.window=40,graph.window=50", "window: given twice" },
    { "algorithm=ika,graph,wave.window=40", "wave.window: no such key" },
    { "algorithm=ika,graph,graph.algorithm=ika", "graph.algorithm: no such key" },
    { "algorithm=ika,graph,.window=4", ".window: no such key" },
    { "algorithm=ika,graph,graph.=4", "no such key" },
    { "algorithm=ika,graph,window=2000", "window = 2000" },
    { "window=20,graph", "not key=value" },
    { "window=20,", "not key=value" },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (hk_detectors_parse(wrong[i].text, d, error, sizeof error) >= 0)
      fail_msg("%s was taken", wrong[i].text);
    if (!strstr(error, wrong[i].says))
      fail_msg("%s: `%s` lacks `%s`", wrong[i].text, error, wrong[i].says);
  }
  refused("algorithm=ika,graph", "only one");
}

/* The window is a duration, and limits are printed as they were given. */
static void limit(void **state)
{
  (void)state;
  const struct hk_detector d = parsed("algorithm=limit,limit=95");
  assert_int_equal(d.algorithm, HK_ALGORITHM_LIMIT);
  assert_int_equal(d.limit.window, 12 * 3600000000000);
  assert_int_equal(d.limit.horizon, 24 * 3600000000000);
  assert_true(d.limit.upper == 95 && d.limit.has_upper && !d.limit.has_lower && d.limit.confidence == 4);
  assert_int_equal(d.hold, 3);
  assert_int_equal(parsed("algorithm=limit,lower=0,window=90m").limit.horizon, 3 * 3600000000000);
  assert_int_equal(parsed("algorithm=limit,lower=0,window=61s").limit.window, 60999999984); /* 24 blocks of whole ns */
  const struct hk_detector both = parsed("algorithm=limit,lower=-2.5,limit=79781000000,window=3d,hold=2,confidence=3,alert=off");
  char text[256] = "", value[32];
  uint32_t next = 0;
  for (const char *name; (name = hk_detector_key_text(&both, &next, value, sizeof value));)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s=%s ", name, value);
  assert_string_equal(text, "algorithm=limit rate=no window=72h hold=2 interval=auto silent=auto horizon=144h alert=off "
                            "confidence=3 limit=79781000000 lower=-2.5 ");
  refused("algorithm=limit", "limit, lower|neither");
  refused("algorithm=limit,limit=5,lower=5", "lower|below|limit");
  refused("algorithm=limit,limit=much", "limit|much|number");
  refused("algorithm=limit,limit=1,window=96", "window|duration|12h");
  refused("algorithm=limit,limit=1,window=auto", "window|duration");
  refused("algorithm=limit,limit=1,window=59s", "window|1m|1000d");
  refused("algorithm=limit,limit=1,window=1001d", "window|1m|1000d");
  refused("algorithm=limit,limit=1,window=12parsecs", "window|12parsecs");
  refused("algorithm=limit,limit=1,interval=1h", "interval|24 blocks|longer window");
  refused("algorithm=limit,limit=1,horizon=29m", "horizon|window / 24|20 windows");
  refused("algorithm=limit,limit=1,horizon=241h", "horizon|20 windows");
  refused("algorithm=limit,limit=1,horizon=soon", "horizon|soon|duration");
  refused("algorithm=limit,limit=1,confidence=0", "confidence|over 0");
  refused("algorithm=limit,limit=1,confidence=7", "confidence|6.5");
  refused("algorithm=limit,limit=1,alert=0.7", "alert|off|confidence and horizon");
  refused("algorithm=limit,limit=1,alert=adaptive", "alert|off");
  refused("algorithm=limit,limit=1,max_fill=3", "max_fill|algorithm = limit");
  refused("algorithm=limit,limit=1,cooldown=3", "cooldown|algorithm = limit");
  refused("algorithm=limit,limit=1,preset=paper", "preset|paper|limit");
  refused("window=12h", "window|duration|algorithm = limit|samples");
  refused("algorithm=shift,window=12h", "window|duration|samples");
  refused("limit=5", "limit|algorithm = limit");
  refused("algorithm=graph,horizon=1h", "horizon|algorithm = graph");
  refused("algorithm=shift,lower=1h", "lower|1h|number");
  refused("algorithm=novelty,confidence=4", "confidence|algorithm = novelty");
}

/* Beside other algorithms: a window in samples is theirs, a window that is a duration is its own. */
static void limit_beside_others(void **state)
{
  (void)state;
  struct hk_detector d[HK_ALGORITHMS];
  char error[256];
  assert_int_equal(
      hk_detectors_parse("algorithm=ika,shift,limit,window=20,limit=95,limit.window=3d,alert=0.4", d, error, sizeof error), 3);
  assert_int_equal(d[0].window, 20);
  assert_int_equal(d[1].window, 20);
  assert_int_equal(d[2].limit.window, 72 * 3600000000000);
  assert_true(d[2].limit.upper == 95 && d[0].limit.has_upper == 0 && d[1].alert == HK_ALERT_FIXED && d[2].threshold == 0.5f);
  assert_int_equal(hk_detectors_parse("algorithm=ika,limit,window=3d,lower=1", d, error, sizeof error), 2);
  assert_int_equal(d[0].window, 96);
  assert_int_equal(d[1].limit.window, 72 * 3600000000000);
  assert_int_equal(hk_detectors_parse("algorithm=limit,ika,limit=1,limit.lower=0", d, error, sizeof error), 2);
  assert_true(d[0].limit.has_upper && d[0].limit.has_lower);
  assert_int_equal(hk_detectors_parse("algorithm=ika,shift,limit=95", d, error, sizeof error), -EINVAL);
  assert_non_null(strstr(error, "limit"));
  char differences[64];
  (void)hk_detector_parse("algorithm=limit,limit=1", &d[0], error, sizeof error);
  (void)hk_detector_parse("algorithm=limit,limit=2,window=1d,horizon=24h", &d[1], error, sizeof error);
  hk_detector_differences(&d[0], &d[1], differences, sizeof differences);
  assert_string_equal(differences, "window, limit");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(default_detector),
    cmocka_unit_test(defaults_follow_other_keys),
    cmocka_unit_test(presets),
    cmocka_unit_test(order_and_blanks),
    cmocka_unit_test(whole_ranges),
    cmocka_unit_test(real_ranges),
    cmocka_unit_test(messages),
    cmocka_unit_test(refused_leaves_the_result),
    cmocka_unit_test(durations),
    cmocka_unit_test(names),
    cmocka_unit_test(graph),
    cmocka_unit_test(graph_refusals),
    cmocka_unit_test(limit),
    cmocka_unit_test(limit_beside_others),
    cmocka_unit_test(several),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
