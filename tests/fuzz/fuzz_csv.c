/* Fuzz target: recordings. The first byte of the input selects the reader's options; the rest is the file. The points must keep
 * the reader's promises, and must be the same from a pipe and from a file that is read like a pipe, or twice from a
 * file that is examined first. */
#include "daemon/cli/csv.h"
#include "proto/wire/name.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
  MOST = 60000, /* bytes: fits into a pipe */
  ALWAYS = 100, /* descriptor that is read from */
};

static void require(bool good)
{
  if (!good)
    abort();
}

/* Messages are text without control characters. */
static void tell(void *arg, const char *text)
{
  uint64_t *hash = arg;
  for (const char *p = text; *p; p++)
    require((unsigned char)*p >= 32 && *p != 127);
  *hash = XXH3_64bits_withSeed(text, strlen(text), *hash);
}

/* Reads everything and closes fd; a hash of all that came out, the error included. A bare file's sensor is named after the
 * descriptor, so it is always the same one. */
static uint64_t read_all(int fd, uint8_t asked, bool once, size_t size)
{
  require(dup3(fd, ALWAYS, O_CLOEXEC) == ALWAYS);
  close(fd);
  static const char *const column[] = { "a" };
  char path[64], error[256] = "";
  uint64_t hash = 0;
  snprintf(path, sizeof path, "/proc/self/fd/%d", ALWAYS);
  const struct hk_csv_config config = { .path = path,
                                        .sensor = asked & 1 ? "s" : NULL,
                                        .columns = column,
                                        .n_columns = asked & 2 ? 1 : 0,
                                        .unit = asked & 4 ? 1000000 : 0,
                                        .skip_bad = asked & 8,
                                        .once = once,
                                        .long_sensor = (asked & 19) == 16 ? "tag" : NULL,
                                        .long_value = "value",
                                        .format = asked & 32 ? "%d/%m/%Y %H:%M:%S.%f" : NULL,
                                        .most_sorted = asked & 64 ? 3 : 0,
                                        .tell = tell,
                                        .arg = &hash };
  struct hk_csv *csv;
  struct hk_csv_row row;
  uint64_t lines = 0;
  int status = hk_csv_open(&csv, &config, error, sizeof error);
  if (status == 0) {
    uint32_t n = hk_csv_sensors(csv);
    require(config.long_sensor || (n >= 1 && (!config.sensor || n == 1)));
    for (uint32_t i = 0; i < n; i++) {
      const char *name = hk_csv_sensor(csv, i);
      require(hk_name_valid(name, strlen(name)));
      hash = XXH3_64bits_withSeed(name, strlen(name), hash);
    }
    while ((status = hk_csv_next(csv, &row, error, sizeof error)) == 1) {
      n = hk_csv_sensors(csv);
      require(row.n >= 1 && row.n <= n && ++lines <= size);
      for (uint32_t i = 0; i < row.n; i++)
        require(row.sensor[i] < n && (i == 0 || row.sensor[i - 1] < row.sensor[i]));
      hash = XXH3_64bits_withSeed(&row.time, sizeof row.time, hash);
      hash = XXH3_64bits_withSeed(row.sensor, row.n * sizeof *row.sensor, hash);
      hash = XXH3_64bits_withSeed(row.value, row.n * sizeof *row.value, hash);
    }
    hk_csv_close(csv);
  }
  require(status == 0 || (status < 0 && strncmp(error, path, strlen(path)) == 0));
  close(ALWAYS);
  return XXH3_64bits_withSeed(error, strlen(error), hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size < 1 || size > MOST)
    return 0;
  const int file = memfd_create("recording", MFD_CLOEXEC);
  int ends[2];
  require(file >= 0 && pipe2(ends, O_CLOEXEC) == 0);
  require(write(file, data + 1, size - 1) == (ssize_t)(size - 1) && write(ends[1], data + 1, size - 1) == (ssize_t)(size - 1));
  close(ends[1]);
  const int again = dup(file), looked = dup(file), twice = dup(file);
  require(again >= 0 && looked >= 0 && twice >= 0);
  close(file);
  require(read_all(again, data[0], true, size) == read_all(ends[0], data[0], true, size));
  require(read_all(looked, data[0], false, size) == read_all(twice, data[0], false, size));
  return 0;
}
