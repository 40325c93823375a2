/* The configuration: values, defaults, and every error reported by file and line. */
#include "daemon/base/address.h"
#include "daemon/sensors/detector_rules.h"
#include "tests/unit/support/config_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_values(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  char address[HK_ADDRESS_MAX];
  const char *text = "\xef\xbb\xbf# a comment\n[daemon]\n  threads=3\nmemory = 3 GiB\nevict = 90\n max_ahead = off ; why\n"
                     "[listen a]\nprotocol = line\ntransport = udp\naddress = [::1]:0\nprecision = ms\n"
                     "[listen b]\r\nprotocol = text\r\naddress = localhost:7412\r\n"
                     "[detector pumps]\nwindow = 48\nmatch = pump*\n\n[detector all]\nmatch = *";
  if (read_text(&c, text, &faults) != 0)
    fail_msg("%s", faults.text);
  assert_int_equal(c.threads, 3);
  assert_true(c.memory == 3ull << 30);
  assert_true(c.evict == 90000000000);
  assert_true(c.max_ahead == 0);
  assert_int_equal(c.max_sensors, 1000000);
  assert_int_equal(c.n_listeners, 2);
  assert_int_equal(c.listeners[0].protocol, HK_PROTOCOL_LINE);
  assert_int_equal(c.listeners[0].transport, HK_TRANSPORT_UDP);
  assert_int_equal(c.listeners[0].precision, 1000000);
  hk_address_format((const struct sockaddr *)&c.listeners[0].address, address);
  assert_string_equal(address, "[::1]:0");
  hk_address_format((const struct sockaddr *)&c.listeners[1].address, address);
  assert_string_equal(address, "127.0.0.1:7412");
  assert_int_equal(c.n_detectors, 2);
  assert_string_equal(c.detectors[0].match, "pump*");
  assert_int_equal(c.detectors[0].detector.window, 48);
  assert_int_equal(c.detectors[1].detector.window, 96);
  hk_config_free(&c);
  hk_config_free(&c);
}

/* With backend = cuda the loss of the GPU ends the daemon; otherwise the daemon continues. */
static void test_several_algorithms(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  if (read_text(&c,
                "[detector a]\nmatch=a*\nalgorithm = shift, graph\nwindow = 30\ngraph.window = auto\n[detector b]\nmatch = *\n",
                &faults) != 0)
    fail_msg("%s", faults.text);
  static const char *const names[] = { "a", "a#graph", "b" };
  assert_int_equal(c.n_detectors, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(c.detectors[i].name, names[i]);
    assert_int_equal(c.detectors[i].number, i);
    assert_int_equal(c.detectors[i].derived, i == 1);
  }
  assert_int_equal(c.detectors[0].detector.algorithm, HK_ALGORITHM_SHIFT);
  assert_int_equal(c.detectors[0].detector.window, 30);
  assert_int_equal(c.detectors[1].detector.algorithm, HK_ALGORITHM_GRAPH);
  assert_int_equal(c.detectors[1].detector.search, 1);
  assert_string_equal(c.detectors[1].match, "a*");
  hk_config_free(&c);
  expect_fault("[detector a#graph]\nmatch = *\n",
               "x.conf:1: [detector a#graph]: a name has no #, which marks further algorithms");
  expect_fault(DETECTOR "algorithm = ika, graph\ngraph.krylov = 3\n", "x.conf:1: [detector all]: graph: krylov");
  expect_fault(DETECTOR "algorithm = ika, graph\ngraph.window = 3\n", "graph: window = 3");
  expect_fault(DETECTOR "algorithm = ika, graph\ngraph.window = x\n", "x.conf:4: graph: window = x");
  expect_fault(DETECTOR "fill = linaer\n", "x.conf:3: fill = linaer: not one of hold, linear; did you mean linear?");
  expect_fault(DETECTOR "ika.windwo = 3\n", "windwo: no such key of a detector; did you mean window?");
  expect_fault("[group g]\nmebers = 4\n", "x.conf:2: mebers: there is no such key of a group; did you mean members?");
  expect_fault("[field f]\nrefti = 4\n", "x.conf:2: refti: there is no such key of a field; did you mean refit?");
  expect_fault("[field f]\noperator = fokus\n",
               "x.conf:2: operator = fokus: none of residual, model, focus, despike, median, hoelder, arma; did you mean focus?");
  expect_fault("[incidents]\nbudgt = 3/day\n", "did you mean budget?");
  expect_fault("[incidents]\ninterval = 1m\n[incidents]\ninterval = 1m\n", "there is an [incidents] section already");
  expect_fault("[incidents a]\ninterval = 1m\nmatch = x*\n[incidents a]\ninterval = 1m\n",
               "there is an [incidents a] section already");
  expect_fault("[incidents a/b]\ninterval = 1m\n", "[incidents a/b]: a name has letters, digits, - and _");
  expect_fault("[incidents a]\nmatch = x*\n", "[incidents a] needs interval");
  expect_fault(
      "[incidents a]\ninterval = 1m\n[incidents b]\ninterval = 1m\n",
      "[incidents b] has no sensors: the first section that matches a sensor has it, and [incidents a] before it matches all");
  expect_fault("[notify n]\ntype = webhook\nurl = http://x/\nsection = a\n", "section is of about = incidents");
  expect_fault("[daemon]\ndurability = jounral\n", "not one of none, snapshot, journal; did you mean journal?");
  expect_fault("[notify n]\ntype = slakc\n", "did you mean slack?");
  expect_fault("[listen l]\nprotocol = biary\n", "not one of binary, line, text, http; did you mean binary?");
  expect_fault("[listen l]\nprecision = nss\n", "not one of ns, us, ms, s; did you mean ns?");
  expect_fault("[listen l]\nscopes = subscibe\n", "did you mean subscribe?");
  expect_fault("[detector x]\nmatch = *\nalert = adaptve\n", "a score over 0 and at most 1; did you mean adaptive?");
  expect_fault(DETECTOR "algorithm = ika, pony\n", "x.conf:3: algorithm = pony: not one of");
  expect_fault(
      "[detector aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\nmatch = *\nalgorithm = ika, graph, shift\n",
      "too long for one with #graph");
  static char many[64 * HK_CONFIG_DETECTORS_MAX]; /* each section is two */
  size_t at = 0;
  for (uint32_t i = 0; i <= HK_CONFIG_DETECTORS_MAX / 2; i++)
    at += (size_t)snprintf(many + at, sizeof many - at, "[detector d%u]\nmatch = *\nalgorithm = ika, svd\n", i);
  expect_fault(many, "more than 1024 detectors");
}

static void test_device_failure(void **state)
{
  static const struct {
    const char *text;
    uint32_t expected;
  } cases[] = { { "", HK_DEVICE_FAILURE_CPU },
                { "backend = auto\n", HK_DEVICE_FAILURE_CPU },
                { "backend = cuda\n", HK_DEVICE_FAILURE_STOP },
                { "on_device_failure = auto\nbackend = cuda\n", HK_DEVICE_FAILURE_STOP },
                { "backend = cuda\non_device_failure = cpu\n", HK_DEVICE_FAILURE_CPU },
                { "on_device_failure = stop\n", HK_DEVICE_FAILURE_STOP } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct hk_config c;
    struct faults faults;
    char text[256];
    snprintf(text, sizeof text, "[daemon]\n%s" DETECTOR, cases[i].text);
    assert_int_equal(read_text(&c, text, &faults), 0);
    assert_int_equal(c.on_device_failure, cases[i].expected);
    assert_true(c.device_timeout == 10000000000);
    hk_config_free(&c);
  }
  expect_fault("[daemon]\ndurability = maybe\n" DETECTOR, "x.conf:2: durability = maybe: not one of none, snapshot, journal");
  expect_fault("[daemon]\ndurability = journal\n" DETECTOR, "x.conf: durability = journal needs state = FOLDER");
  expect_fault("[daemon]\nstate =\n" DETECTOR, "x.conf:2: state: a path of 1 to 511 bytes is needed");
  expect_fault("[daemon]\non_device_failure = panic\n" DETECTOR, "on_device_failure = panic: not one of auto, cpu, stop");
  expect_fault("[daemon]\ndevice_timeout = 10ms\n" DETECTOR, "x.conf:2: device_timeout = 10ms: at least 1 s, or off");
}

#ifdef HK_HAVE_MQTT
static void test_mqtt(void **state)
{
  (void)state;
  struct hk_config config;
  struct faults faults;
#define BROKER "[detector all]\nmatch = *\n[mqtt plant]\nurl = mqtt://broker\n"
  assert_int_equal(read_text(&config, BROKER "topics = a/{line}/+, b/{line}/#\nsensor = {line},unit={2} t\n", &faults), 0);
  assert_int_equal(config.mqtt.n, 1);
  assert_string_equal(config.mqtt.rule[0].address.host, "broker");
  assert_int_equal(config.mqtt.rule[0].address.port, 1883);
  assert_string_equal(config.mqtt.rule[0].client_id, "hankeld-plant");
  hk_config_free(&config);
  assert_int_equal(
      read_text(&config, "[detector all]\nmatch = *\n[mqtt a]\nurl = mqtts://[::1]:99\ntopics = p/{sensor}\n", &faults), 0);
  assert_string_equal(config.mqtt.rule[0].address.host, "::1");
  assert_int_equal(config.mqtt.rule[0].address.port, 99);
  assert_true(config.mqtt.rule[0].address.tls);
  assert_string_equal(config.mqtt.rule[0].sensor, "{sensor}");
  hk_config_free(&config);
  static const struct {
    const char *keys, *told;
  } wrong[] = { { "", "needs topics" },
                { "topics = a/b#\n", "+ and # stand for whole levels" },
                { "topics = #/b\n", "# stands for the last levels" },
                { "topics = a/x{b}\n", "{WORD} stands for a whole level" },
                { "topics = {a}/{a}\n", "two of its levels have the same name" },
                { "topics = {1}/b\n", "not of digits alone" },
                { "topics = a,,b\n", "it is empty" },
                { "topics = $share/g\n", "$share/GROUP/TOPIC" },
                { "topics = a/{x}, b\nsensor = {x}\n", "every one of `topics` has" },
                { "topics = a\nsensor = {1} b c\n", "at most one blank" },
                { "topics = a\nsensor = {1}\x01\n", "control character" },
                { "topics = a\nsensor = {1\n", "not closed or not opened" },
                { "publish = incidents\n", "not one or both of events, scores" },
                { "publish = events\nprefix = a/#\n", "without + and #" },
                { "publish = events\nmin_score = 0.5\n", "min_score is for publish = scores" },
                { "publish = scores\ndiscovery = homeassistant\n", "needs publish = events" },
                { "topics = a\nqos = 2\n", "not 0 or 1" },
                { "topics = a\nversion = 4\n", "not 5 or 3.1.1" },
                { "topics = a\nsession = 0s\n", "not a duration" },
                { "topics = a\nca = /x\n", "for url = mqtts://" },
                { "topics = a\npassword_file = /x\n", "password_file needs user" },
                { "topics = a\nuser = x\npassword_file = /x\n", "would be sent unencrypted" },
                { "topics = a\ncolour = red\n", "[mqtt] has no key `colour`" },
                { "topics = a\n[mqtt other]\nurl = mqtt://broker\ntopics = a\nclient_id = hankeld-plant\n",
                  "which would disconnect one of them" },
                { "topics = a\n[mqtt b/c]\n", "because file names contain it" },
                { "topics = a\n[mqtt u]\nurl = http://broker\ntopics = a\n", "needs url = mqtt://HOST" },
                { "topics = a\n[mqtt u]\nurl = mqtt://broker:70000\ntopics = a\n", "from 1 to 65535" } };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[512];
    snprintf(text, sizeof text, "%s%s", BROKER, wrong[i].keys);
    expect_fault(text, wrong[i].told);
  }
}
#endif

static void test_default_listeners(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  char address[HK_ADDRESS_MAX];
  assert_int_equal(read_text(&c, DETECTOR, &faults), 0);
  assert_int_equal(c.n_listeners, 5);
  hk_address_format((const struct sockaddr *)&c.listeners[0].address, address);
  assert_string_equal(address, "127.0.0.1:7410");
  hk_config_free(&c);
}

static void test_faults(void **state)
{
  (void)state;
  expect_fault("[daemon]\nthreds = 3\n" DETECTOR, "x.conf:2: [daemon] has no key `threds`");
  expect_fault("[daemon]\nthreads = many\n" DETECTOR, "x.conf:2: threads = many: not a whole number");
  expect_fault("[daemon]\nthreads = -1\n" DETECTOR, "x.conf:2: threads = -1");
  expect_fault("[daemon]\nmax_sensors = 16777216\n" DETECTOR, "x.conf:2: max_sensors");
  expect_fault("[daemon]\nmemory = 99999999999 TiB\n" DETECTOR, "x.conf:2: memory");
  expect_fault("[daemon]\nmemory = 1 GB\n" DETECTOR, "x.conf:2: memory");
  expect_fault("[daemon]\nevict = soon\n" DETECTOR, "x.conf:2: evict = soon: not a duration");
  expect_fault("[daemon]\nhandshake = off\n" DETECTOR, "x.conf:2: handshake");
  expect_fault("[daemon]\nbackend = gpu\n" DETECTOR, "x.conf:2: backend = gpu: not one of auto, cpu, cuda, reference");
  expect_fault("[daemon]\nthreads = 1\nthreads = 2\n" DETECTOR, "x.conf:3: `threads` is already in this section");
  expect_fault("[daemon]\n[daemon]\n" DETECTOR, "x.conf:2: there is a [daemon] section already");
  expect_fault("threads = 1\n" DETECTOR, "x.conf:1: `threads` is before the first section");
  expect_fault("threads = 1\nthreads = 1\n" DETECTOR, "x.conf:2: `threads` is before the first section");
  expect_fault("[demon]\n" DETECTOR, "x.conf:1: no such section");
  expect_fault("[daemon\nthreads = 1\n" DETECTOR, "x.conf:1: a section ends with ]");
  expect_fault("[daemon]\nthreads\n" DETECTOR, "x.conf:2: not understood");
  expect_fault(DETECTOR "window", "x.conf:3: not understood");
  expect_fault("[listen]\n" DETECTOR, "x.conf:1: [listen NAME]: a name");
  expect_fault("[listen a]\nprotocol = line\n" DETECTOR, "x.conf:1: [listen a] needs an address");
  expect_fault("[listen a]\naddress = 127.0.0.1:1\n" DETECTOR, "x.conf:1: [listen a] needs a protocol");
  expect_fault("[listen a]\nprotocol = text\ntransport = udp\naddress = 127.0.0.1:1\n" DETECTOR,
               "x.conf:1: [listen a]: the text protocol");
  expect_fault("[listen a]\nprotocol = binary\nprecision = s\naddress = 127.0.0.1:1\n" DETECTOR,
               "precision is for protocol = line");
  expect_fault("[listen a]\nprotocol = line\naddress = 0.0.0.0:7411\n" DETECTOR,
               "x.conf:1: [listen a]: beyond loopback a listener needs TLS");
  expect_fault("[listen a]\nprotocol = line\naddress = [::]:7411\n" DETECTOR, "beyond loopback");
  expect_fault("[listen a]\nprotocol = line\naddress = example.org:1\n" DETECTOR, "x.conf:3: address");
  expect_fault("[listen a]\nprotocol = line\naddress = 127.0.0.1:65536\n" DETECTOR, "x.conf:3: address");
  expect_fault("[listen a]\nprotocol = line\naddress = 127.0.0.1:\n" DETECTOR, "x.conf:3: address");
  expect_fault("[listen a]\nprotocol = line\ntransport = udp\naddress = localhost:9711\n"
               "[listen b]\nprotocol = binary\naddress = 127.0.0.1:9711\n" /* over TCP: another one */
               "[listen c]\nprotocol = binary\ntransport = udp\naddress = 127.0.0.1:9711\n" DETECTOR,
               "x.conf:8: [listen c]: 127.0.0.1:9711 over udp is the address of [listen a] already\n");
  expect_fault("[detector a]\nwindow = 8\n", "x.conf:1: [detector a] needs match");
  expect_fault("[detector a]\nmatch = *\nwindow = 3\n", "x.conf:3: ");
  expect_fault("[detector a]\nmatch = *\nrank = 5\nkrylov = 5\n", "x.conf:1: [detector a]: krylov");
  expect_fault("[detector a]\nmatch = *\n[detector a]\nmatch = *\n", "x.conf:3: there is a [detector a] already");
  expect_fault("[daemon]\n", "x.conf: no [detector NAME] section");
  expect_fault("[daemon]\nbacklog = 1024\n" DETECTOR, "x.conf: backlog = 1024: too small");
  expect_fault("[daemon]\nthreads = 2 # two\n" DETECTOR, "x.conf:2: threads = 2 # two: a comment after a value begins with ;");
  expect_fault("[detector a]\nmatch = pump*\t# pumps\n", "x.conf:2: match = pump*\t# pumps: a comment");
}

/* A key whose value was refused is reported once, not also as missing. */
static void test_a_refused_key_is_not_missing(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  assert_int_not_equal(read_text(&c, "[detector disk]\nmatch = *\nalgorithm = limit\nlimit = 40GB\n", &faults), 0);
  assert_non_null(strstr(faults.text, "x.conf:4: limit = 40GB: "));
  assert_null(strstr(faults.text, "neither is given"));
  assert_ptr_equal(strchr(faults.text, '\n'), strrchr(faults.text, '\n'));
  expect_fault("[detector disk]\nmatch = *\nalgorithm = limit\n", "neither is given");
  expect_fault("[detector disk]\nalgorithm = limit\n", "neither is given"); /* `match` is missing, no key was refused */
}

static void test_all_faults_are_told(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  assert_int_not_equal(read_text(&c, "[daemon]\na = 1\nb = 2\nnonsense\n[x]\nc = 3\n[detector y]\nwindow = 0\n", &faults), 0);
  assert_int_equal(faults.n, 6); /* a, b, nonsense, [x], window, no match */
}

/* Another file than a configuration, such as a recording, does not fill the terminal. */
static void test_not_all_of_very_many_faults(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  char text[4000] = "";
  for (size_t i = 0; i < 300; i++)
    strcat(text, "2026: 1\n");
  assert_int_not_equal(read_text(&c, text, &faults), 0);
  assert_int_equal(faults.n, 101);
}

static void test_long_lines(void **state)
{
  (void)state;
  char text[5000];
  memset(text, 'x', sizeof text);
  memcpy(text, "[daemon]\nthreads = ", 19);
  strcpy(text + 4000, "\nfoo = 1\n" DETECTOR);
  expect_fault(text, "x.conf:2: longer than");
  expect_fault(text, "x.conf:3: [daemon] has no key `foo`");

  struct hk_config c;
  struct faults faults;
  snprintf(text, sizeof text, "#%0198d\n" DETECTOR "#%0198d", 0, 0); /* 199 bytes each */
  assert_int_equal(read_text(&c, text, &faults), 0);
  hk_config_free(&c);
  snprintf(text, sizeof text, "#%0199d\n" DETECTOR, 0);
  expect_fault(text, "x.conf:1: longer than 199 bytes");
}

static void test_nul_bytes(void **state)
{
  (void)state;
  /* a disk has lost a block: the line that limits access to a listener is all NUL, also its LF */
  static const char rules[] = "[listen one]\nprotocol = line\naddress = 127.0.0.1:0\n";
  static const struct {
    size_t at, length;
    const char *fault;
  } cases[] = { { sizeof rules - 1, 18, "x.conf:4: a NUL byte" },
                { sizeof rules - 1, 17, "x.conf:4: a NUL byte" },
                { sizeof rules - 1 + 16, 1, "x.conf:4: a NUL byte" },
                { 0, 4, "x.conf:1: a NUL byte" } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    struct hk_config config;
    struct faults faults = { 0 };
    const size_t size = (size_t)snprintf(text, sizeof text, "%stokens = /etc/some\n" DETECTOR, rules);
    memset(text + cases[i].at, 0, cases[i].length);
    FILE *file = fmemopen(text, size, "r");
    assert_non_null(file);
    assert_int_equal(hk_config_read(&config, file, "x.conf", note, &faults), -EINVAL);
    fclose(file);
    if (!strstr(faults.text, cases[i].fault))
      fail_msg("%s", faults.text);
  }
}

/* The example promises to have each key with its default, commented out or not. */
static void test_example(void **state)
{
  (void)state;
  struct hk_config as_it_is, all;
  struct faults faults = { 0 };
  char text[16384], line[512];
  const char *path = getenv("HANKELD_EXAMPLE");
  if (!path)
    skip();
  if (hk_config_load(&as_it_is, path, HK_CONFIG_FILE, note, &faults) != 0)
    fail_msg("%s", faults.text);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[0] = 0;
  while (fgets(line, sizeof line, file))
    strcat(text, line[0] == '#' && line[1] != ' ' ? line + 1 : line);
  fclose(file);
  if (read_text(&all, text, &faults) != 0)
    fail_msg("%s", faults.text);
  assert_int_equal(all.n_listeners, as_it_is.n_listeners);
  for (uint32_t i = 0; i < all.n_listeners; i++)
    assert_memory_equal(&all.listeners[i], &as_it_is.listeners[i], sizeof all.listeners[i]);
  struct hk_detector untuned[HK_ALGORITHMS], light;
  char error[256];
  const uint32_t n = as_it_is.n_detectors,
                 before = all.n_detectors - all.n_groups - 2 * all.n_fields - n; /* behind: of groups, fields */
  assert_int_equal(hk_detectors_parse(HK_DETECTORS_UNTUNED, untuned, error, sizeof error), 3);
  assert_int_equal(n, 3);
  for (uint32_t i = 0; i < n; i++) {
    struct hk_config_detector *d = &all.detectors[before + i];
    assert_int_equal(d->number, before + i);
    d->number = i; /* it is not alone there */
    assert_memory_equal(d, &as_it_is.detectors[i], sizeof *d);
    assert_memory_equal(&d->detector, &untuned[i], sizeof untuned[i]);
  }
  assert_int_equal(hk_detector_parse("", &light, error, sizeof error), 0);
  assert_string_equal(all.detectors[before - 1].name, "light");
  assert_memory_equal(&all.detectors[before - 1].detector, &light, sizeof light);
  const struct hk_group_rule rule = hk_group_default();
  assert_int_equal(all.n_groups, 1);
  assert_memory_equal(&all.groups[0].rule, &rule, sizeof rule);
  const struct hk_field_rule field = hk_field_default();
  assert_int_equal(all.n_fields, 1);
  assert_memory_equal(&all.fields[0].rule, &field, sizeof field);
  assert_memory_equal(&all, &as_it_is, offsetof(struct hk_config, listeners));
  hk_config_free(&as_it_is);
  hk_config_free(&all);
}

static void test_unreached(void **state)
{
  (void)state;
  struct hk_config c;
  struct faults faults;
  char line[512];
  assert_int_equal(read_text(&c,
                             "[detector a]\nmatch = pump?*\n[detector b]\nmatch = pump*\n[detector c]\nmatch = *1\n"
                             "[detector d]\nmatch = pump*x?\n[detector e]\nmatch = *p\n[detector f]\nmatch = a#1\n",
                             &faults),
                   0);
  for (uint32_t i = 0; i < c.n_detectors; i++)
    assert_int_equal(hk_sections_unreached(&c, i, line, sizeof line), i == 3 || i == 5);
  assert_string_equal(line, "no sensor reaches [detector f] (match = a#1): [detector c] (match = *1) comes first");
  hk_config_free(&c);
  assert_int_equal(read_text(&c,
                             "[detector a]\nmatch = *\n[detector b]\nmatch = none\n[detector c]\nmatch = none\n"
                             "[field f]\nmatch = *\noperator = residual\ndetector = b\n",
                             &faults),
                   0);
  for (uint32_t i = 0; i < 3; i++) /* b is reached by derived series */
    assert_int_equal(hk_sections_unreached(&c, i, line, sizeof line), i == 2);
  hk_config_free(&c);
}

/* Errors suggest the nearest section, and the nearest key of each kind. */
static void test_meant(void **state)
{
  (void)state;
  static const char *const wrong[][2] = {
    { "[daemon]\ndurabilty = none\n", "[daemon] has no key `durabilty`; did you mean durability?" },
    { "[listne x]\n", "no such section; did you mean [listen]? there are [daemon]," },
    { "[listen x]\nadress = 127.0.0.1:1\n", "[listen] has no key `adress`; did you mean address?" },
    { "[detector x]\nwindwo = 9\n", "[detector] has no key `windwo`; did you mean window?" },
    { "[detector x]\nmtach = *\n", "[detector] has no key `mtach`; did you mean match?" },
    { "[field x]\ntravl = onward\n", "no such key of a field; did you mean travel?" },
    { "[notify x]\ntemplat = x\n", "[notify] has no key `templat`; did you mean template?" },
    { "[maintenance x]\ndialy = 1:00-2:00\n", "[maintenance] has no key `dialy`; did you mean daily?" },
    { "[notify x]\ntyp = webhook\n", "[notify] has no key `typ`; did you mean type?" },
    { "[cluster x]\nrloe = scorer\n", "[cluster] has no key `rloe`; did you mean role?" },
    { "[daemon]\ncolour = red\n", "[daemon] has no key `colour`; hankeld.conf(5) lists them" },
    { "[colour]\n", "no such section; there are [daemon]," },
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    expect_fault(wrong[i][0], wrong[i][1]);
}

#ifdef HK_HAVE_MQTT
/* Two sections that get the messages of one topic, in turn or each of them. */
static void test_mqtt_topics_meet(void **state)
{
  (void)state;
  static const char *const twos[][3] = {
    { "topics = x, $share/g/a/#", "topics = $share/g/a/#",
      "[mqtt p] and [mqtt q] subscribe to the same topic of one broker, $share/g/a/#: each gets" },
    { "topics = +/v", "topics = y, +/v", "of one broker, +/v: every message comes twice" },
    { "topics = a/#", "topics = a/#\nvalues = v", NULL }, /* each takes something else */
    { "topics = a/#", "topics = a/#\nsensor = b/{topic}", NULL },
    { "topics = $share/g/a/#", "topics = $share/g/b/#", NULL },
    { "topics = $share/g/a/#", "topics = $share/h/a/#", NULL },
    { "topics = a/#", "publish = events", NULL },
  };
  for (size_t i = 0; i < sizeof twos / sizeof *twos; i++)
    for (uint32_t elsewhere = 0; elsewhere < 2; elsewhere++) {
      struct hk_config c;
      struct faults faults;
      char text[512], line[512];
      uint32_t at = 0;
      snprintf(text, sizeof text, "%s[mqtt p]\nurl = mqtt://h\n%s\n[mqtt q]\nurl = mqtt://%s\n%s\n", DETECTOR, twos[i][0],
               elsewhere ? "h:1884" : "h:1883", twos[i][1]);
      assert_int_equal(read_text(&c, text, &faults), 0);
      const bool meet = hk_mqtt_rules_meet(&c.mqtt, &at, line, sizeof line);
      assert_int_equal(meet, !elsewhere && twos[i][2] != NULL);
      if (meet)
        assert_non_null(strstr(line, twos[i][2]));
      assert_false(meet && hk_mqtt_rules_meet(&c.mqtt, &at, line, sizeof line));
      hk_config_free(&c);
    }
}
#endif

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_values),
#ifdef HK_HAVE_MQTT
                                      cmocka_unit_test(test_mqtt),
                                      cmocka_unit_test(test_mqtt_topics_meet),
#endif
                                      cmocka_unit_test(test_default_listeners),
                                      cmocka_unit_test(test_faults),
                                      cmocka_unit_test(test_a_refused_key_is_not_missing),
                                      cmocka_unit_test(test_all_faults_are_told),
                                      cmocka_unit_test(test_not_all_of_very_many_faults),
                                      cmocka_unit_test(test_long_lines),
                                      cmocka_unit_test(test_nul_bytes),
                                      cmocka_unit_test(test_example),
                                      cmocka_unit_test(test_device_failure),
                                      cmocka_unit_test(test_several_algorithms),
                                      cmocka_unit_test(test_meant),
                                      cmocka_unit_test(test_unreached) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
