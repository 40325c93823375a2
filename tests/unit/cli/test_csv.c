/* The reader of recordings: files that it accepts, and the errors of those that it refuses, in whatever pieces the bytes
 * arrive. */
#include "daemon/base/timestamp.h"
#include "daemon/cli/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define S 1000000000LL

/* A file in memory with a path. */
struct file {
  int fd;
  char path[64];
};

static struct file make_file(const char *text, size_t size)
{
  struct file file = { .fd = memfd_create("recording", 0) };
  assert_true(file.fd >= 0);
  assert_int_equal(write(file.fd, text, size), (ssize_t)size);
  snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
  return file;
}

/* Reads everything as lines `sensor,time,value`, then the error if there was one. */
static char *read_all(const char *path, struct hk_csv_config config)
{
  static char out[1 << 16];
  char error[512];
  struct hk_csv *csv;
  struct hk_csv_row row;
  int status;
  size_t used = 0;
  out[0] = 0;
  config.path = path;
  status = hk_csv_open(&csv, &config, error, sizeof error);
  if (status == 0) {
    while ((status = hk_csv_next(csv, &row, error, sizeof error)) == 1)
      for (uint32_t i = 0; i < row.n; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s,%lld,%.17g\n", hk_csv_sensor(csv, row.sensor[i]),
                                 (long long)row.time, row.value[i]);
    hk_csv_close(csv);
  }
  if (status < 0) {
    const char *name = strncmp(error, "/proc", 5) == 0 ? strchr(error, ':') : error; /* leave the changing path out */
    snprintf(out + used, sizeof out - used, "error%s\n", name ? name : error);
  }
  return out;
}

static char *read_text(const char *text, struct hk_csv_config config)
{
  struct file file = make_file(text, strlen(text));
  char *out = read_all(file.path, config);
  close(file.fd);
  return out;
}

#define READS(text, expected) assert_string_equal(read_text(text, (struct hk_csv_config){ 0 }), expected)

static void takes_what_programs_write(void **state)
{
  (void)state;
  READS("time,a\n1700000000,1.5\n", "a,1700000000000000000,1.5\n");
  READS("timestamp,value\n2013-12-02 21:15:00,73.96732207\n", "value,1386018900000000000,73.967322069999994\n");
  READS("datetime;a;b\n2020-03-09 10:14:33;0.5;-1e3\n", "a,1583748873000000000,0.5\nb,1583748873000000000,-1000\n");
  READS("\xef\xbb\xbftime,a\r\n\r\n1,2\r\n \n3,4", "a,1000000000,2\na,3000000000,4\n");
  READS("\xef\xbb\xbf"
        "a,time\n2,1\n",
        "a,1000000000,2\n");
  READS("\"time\",\"a,\"\"b\"\"\"\n\"1\",\"2\"\n", "a,\"b\",1000000000,2\n");
  READS("a,Time,b\n1,10,2\n", "a,10000000000,1\nb,10000000000,2\n");
  READS("when,a\n1,2\n", "a,1000000000,2\n");
  READS(",a\n1,2\n", "a,1000000000,2\n");
  READS("time,a,\n1,2,\n2,3\n", "a,1000000000,2\na,2000000000,3\n");
  READS(" time , a \n 1 , 2 \n", "a,1000000000,2\n");
  READS("time;a\n1;2,5\n", "a,1000000000,2.5\n");
}

static void takes_bare_numbers(void **state)
{
  (void)state;
  char folder[] = "/tmp/hankel-csv-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/pump.7.txt", folder);
  FILE *file = fopen(path, "w");
  fputs("1\n\n2.5\nnan\n", file);
  fclose(file);
  assert_string_equal(read_all(path, (struct hk_csv_config){ 0 }), "pump.7,0,1\npump.7,1000000000,2.5\npump.7,2000000000,nan\n");
  assert_string_equal(read_all(path, (struct hk_csv_config){ .sensor = "p" }), "p,0,1\np,1000000000,2.5\np,2000000000,nan\n");
  unlink(path);
  rmdir(folder);
  READS("level\n1\n2\n", "level,0,1\nlevel,1000000000,2\n");
}

static void skips_empty_cells_and_hands_on_what_is_not_finite(void **state)
{
  (void)state;
  READS("time,a,b\n1,,2\n2,NA,null\n3,4\n", "b,1000000000,2\na,3000000000,4\n");
  READS("time,a\n1,nan\n2,-inf\n3,1e400\n", "a,1000000000,nan\na,2000000000,-inf\na,3000000000,inf\n");
}

static void picks_columns(void **state)
{
  (void)state;
  const char *const wanted[] = { "c", "a" }, *const missing[] = { "d" }, *const time[] = { "time" };
  const char text[] = "time,a,b,c\n1,2,word,3\n";
  struct hk_csv_config config = { .columns = wanted, .n_columns = 2 };
  assert_string_equal(read_text(text, config), "a,1000000000,2\nc,1000000000,3\n");
  config.n_columns = 1;
  config.sensor = "new name";
  assert_string_equal(read_text(text, config), "new name,1000000000,3\n");
  config.columns = missing;
  assert_string_equal(read_text(text, config), "error:1: no column is named d; there are time, a, b, c\n");
  config.columns = time;
  assert_string_equal(read_text(text, config), "error:1: column time is the time, not a sensor\n");
  assert_non_null(strstr(read_text(text, (struct hk_csv_config){ .sensor = "x" }), "choose one with --column"));
}

static void refuses_with_file_and_line(void **state)
{
  (void)state;
  READS("time,a\n1,2\n\n2,abc\n", "error:4: \"abc\" is no number, of sensor a\n");
  READS("time,a\n1,0x10\n", "error:2: \"0x10\" is no number, of sensor a\n");
  READS("time,a\n2013-02-30 00:00:00,1\n", "error:2: \"2013-02-30 00:00:00\" is no time: want YYYY-MM-DD hh:mm:ss, ISO 8601, or "
                                           "an epoch number, or say --time-format\n");
  READS("time,a\nyesterday,1\n",
        "error:2: \"yesterday\" is no time: want YYYY-MM-DD hh:mm:ss, ISO 8601, or an epoch number, or say --time-format\n");
  READS("time,a\n99999999999999999999,1\n", "error:2: the time 99999999999999999999 is out of range\n");
  READS("time,a\n9999-12-31,1\n", "error:2: the time 9999-12-31 is out of range\n");
  READS("time,a\n0001-01-01,1\n", "error:2: the time 0001-01-01 is out of range\n");
  READS("time,a\n1,2,3\n", "error:2: more cells than the header has (2)\n");
  READS("time,a\n1,\"2\n", "error:2: cell 2: the quotes are not closed\n");
  READS("1700000000,5\n", "error:1: the first line must be a header, but \"1700000000\" is a number\n");
  READS("time\n1\n",
        "error:1: no value column: want a header such as time,NAME (cells apart by , ; or a tab) or one number a line\n");
  READS("time,a\n1,\x1b[2J\n", "error:2: \"?[2J\" is no number, of sensor a\n");
  READS("time,\xef\xbb\xbf\x01\n1,2\n",
        "error:1: \"\xef\xbb\xbf?\" cannot name a sensor: want 1 to 512 bytes of UTF-8, no control characters\n");
  struct file file = make_file("time,a\n1,\0002\n", 12);
  assert_non_null(strstr(read_all(file.path, (struct hk_csv_config){ 0 }), ":2: a NUL byte"));
  close(file.fd);
  assert_non_null(strstr(read_all("/nonexistent/x.csv", (struct hk_csv_config){ 0 }), "No such file"));
  assert_non_null(strstr(read_all("/tmp", (struct hk_csv_config){ 0 }), "a folder"));
  assert_non_null(strstr(read_text("\n\n", (struct hk_csv_config){ 0 }), "empty, no points"));
}

static void bounds_a_line(void **state)
{
  (void)state;
  char *text = malloc(3 * HK_CSV_LINE_MAX);
  assert_non_null(text);
  memset(text, ' ', 3 * HK_CSV_LINE_MAX);
  memcpy(text, "time,a\n1,2\n", 11);
  struct file file = make_file(text, 3 * HK_CSV_LINE_MAX);
  assert_string_equal(read_all(file.path, (struct hk_csv_config){ 0 }), "error:3: the line is longer than 1048576 bytes\n");
  close(file.fd);
  memcpy(text + HK_CSV_LINE_MAX / 2, "\n3,4\n", 5);
  file = make_file(text, HK_CSV_LINE_MAX);
  assert_string_equal(read_all(file.path, (struct hk_csv_config){ 0 }), "a,1000000000,2\na,3000000000,4\n");
  close(file.fd);
  free(text);
}

static void counts_days(void **state)
{
  (void)state;
  for (int64_t day = -106650; day < 106650; day++) { /* 1678 to 2261 */
    const time_t time = (time_t)(day * 86400);
    struct tm tm;
    int64_t days;
    assert_non_null(gmtime_r(&time, &tm));
    assert_int_equal(hk_timestamp_days(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, &days), 0);
    assert_int_equal(days, day);
    if (tm.tm_mday == 1 && tm.tm_mon > 0) /* the day before was the last of its month */
      assert_int_equal(hk_timestamp_days(tm.tm_year + 1900, tm.tm_mon, 32, &days), -EINVAL);
  }
  int64_t none;
  assert_int_equal(hk_timestamp_days(1900, 2, 29, &none), -EINVAL);
  assert_int_equal(hk_timestamp_days(2013, 4, 31, &none), -EINVAL);
  assert_int_equal(hk_timestamp_days(2013, 4, 0, &none), -EINVAL);
}

static void reads_times(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int64_t ns;
  } dates[] = {
    { "1970-01-01", 0 },
    { "2013-12-02T21:15:00Z", 1386018900 * S },
    { "2013-12-02t21:15z", 1386018900 * S },
    { "2013-12-02 22:15:00+01:00", 1386018900 * S },
    { "2013-12-02T16:15:00-0500", 1386018900 * S },
    { "2013-12-03 02:45:00 +05:30", 1386018900 * S },
    { "2013-12-02 21:15:00.5", 1386018900 * S + 500000000 },
    { "2013-12-02 21:15:00.1234567899", 1386018900 * S + 123456789 },
    { "2012-02-29 00:00:00", 1330473600 * S },
    { "2016-12-31 23:59:60", 1483228800 * S },
    { "1969-12-31 23:59:59.25", -750000000 },
  };
  static const char *const wrong[] = {
    "2013-13-01",          "2013-00-01",          "2013-02-29",           "2013-1-1",
    "2013-12-02 24:00:00", "2013-12-02 21:60:00", "2013-12-02 21:15:61",  "2013-12-02 21:15:00 noon",
    "2013-12-02T",         "2013-12-02 21",       "2013-12-02 21:15:00.", "2013-12-02 21:15:00+1",
  };
  static const struct {
    const char *text;
    int64_t unit, ns;
  } epochs[] = {
    { "1700000000", S, 1700000000 * S },
    { "1700000000.123456789", S, 1700000000 * S + 123456789 },
    { "1700000000123", 1000000, 1700000000123000000 },
    { "1700000000123.5", 1000000, 1700000000123500000 },
    { "1700000000123456", 1000, 1700000000123456000 },
    { "1700000000123456789", 1, 1700000000123456789 },
    { "-1.5", S, -1500000000 },
    { "1.7e9", S, 1700000000 * S },
    { "0", S, 0 },
  };
  int64_t ns;
  for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
    assert_true(hk_timestamp_is_date(dates[i].text));
    assert_int_equal(hk_timestamp_parse_date(dates[i].text, &ns), 0);
    assert_int_equal(ns, dates[i].ns);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (hk_timestamp_parse_date(wrong[i], &ns) != -EINVAL)
      fail_msg("%s was taken", wrong[i]);
  for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
    assert_int_equal(hk_timestamp_parse_epoch(epochs[i].text, epochs[i].unit, &ns), 0);
    assert_int_equal(ns, epochs[i].ns);
    if (epochs[i].ns > S)
      assert_int_equal(hk_timestamp_guess_unit(epochs[i].text), epochs[i].unit);
  }
  assert_int_equal(hk_timestamp_parse_epoch("9300000000", S, &ns), -ERANGE);
  assert_int_equal(hk_timestamp_parse_epoch("12x", S, &ns), -EINVAL);
  assert_int_equal(hk_timestamp_parse_epoch("", S, &ns), -EINVAL);
  /* the unit is guessed once: later times do not change it */
  READS("time,a\n99999999999,1\n100000000001,2\n", "error:2: the time 99999999999 is out of range\n");
  assert_string_equal(read_text("time,a\n5,1\n", (struct hk_csv_config){ .unit = 1000000 }), "a,5000000,1\n");
}

static void writes_times(void **state)
{
  (void)state;
  static const struct {
    int64_t ns;
    const char *text;
  } cases[] = {
    { 0, "1970-01-01 00:00:00" },
    { 1386018900 * S, "2013-12-02 21:15:00" },
    { 1386018900 * S + 500000000, "2013-12-02 21:15:00.500" },
    { 1386018900 * S + 1000, "2013-12-02 21:15:00.000001" },
    { 1386018900 * S + 1, "2013-12-02 21:15:00.000000001" },
    { -1, "1969-12-31 23:59:59.999999999" },
  };
  char text[HK_TIMESTAMP_SIZE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hk_timestamp_format(cases[i].ns, text);
    assert_string_equal(text, cases[i].text);
  }
}

/* The same bytes a few at a time through a pipe: every cut gives the same points, and each line is there once it is whole. */
static void follows_a_pipe(void **state)
{
  (void)state;
  const char text[] = "time,a\r\n1,2\n2,3\n";
  char path[64], expected[] = "a,1000000000,2\na,2000000000,3\n";
  for (size_t cut = 1; cut < sizeof text - 1; cut++) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      ssize_t done = write(ends[1], text, cut);
      usleep(200);
      done += write(ends[1], text + cut, sizeof text - 1 - cut);
      _exit(done == sizeof text - 1 ? 0 : 1);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_string_equal(read_all(path, (struct hk_csv_config){ 0 }), expected);
    close(ends[0]);
    waitpid(writer, NULL, 0);
  }
  int ends[2];
  char error[256];
  struct hk_csv *csv;
  struct hk_csv_row row;
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "time,a\n1,2\n3", 12), 12);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  assert_int_equal(hk_csv_open(&csv, &(struct hk_csv_config){ .path = path }, error, sizeof error), 0);
  assert_true(hk_csv_ready(csv));
  assert_int_equal(hk_csv_next(csv, &row, error, sizeof error), 1);
  assert_false(hk_csv_ready(csv));
  hk_csv_close(csv);
  close(ends[0]);
  close(ends[1]);
}

/* Times that ascend from now on, in place of those in the file, or of missing ones. */
static void times_of_reading(void **state)
{
  (void)state;
  static const char *const texts[] = { "1\n2\n3\n", "v\n1\n2\n3\n", "time,v\nno time,1\n5,2\n5,3\n", "v,w\n1,\n2,\n3,\n" };
  for (int i = 0; i < 4; i++) {
    struct file file = make_file(texts[i], strlen(texts[i]));
    char error[512];
    struct hk_csv *csv;
    struct hk_csv_row row;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t before = now.tv_sec * 1000000000ll + now.tv_nsec - 1;
    assert_int_equal(hk_csv_open(&csv, &(struct hk_csv_config){ .path = file.path, .now = true }, error, sizeof error), 0);
    for (int k = 1; k <= 3; k++) {
      assert_int_equal(hk_csv_next(csv, &row, error, sizeof error), 1);
      assert_true(row.n == 1 && row.value[0] == k && row.time > before && row.time < before + 3600000000000);
      before = row.time;
    }
    assert_int_equal(hk_csv_next(csv, &row, error, sizeof error), 0);
    hk_csv_close(csv);
    close(file.fd);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(takes_what_programs_write),
    cmocka_unit_test(takes_bare_numbers),
    cmocka_unit_test(skips_empty_cells_and_hands_on_what_is_not_finite),
    cmocka_unit_test(picks_columns),
    cmocka_unit_test(refuses_with_file_and_line),
    cmocka_unit_test(bounds_a_line),
    cmocka_unit_test(counts_days),
    cmocka_unit_test(reads_times),
    cmocka_unit_test(writes_times),
    cmocka_unit_test(follows_a_pipe),
    cmocka_unit_test(times_of_reading),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
