/* Reads line protocol from standard input and prints the parsed form of each line, for line_oracle.py: "!" for an error,
 * otherwise the time (or "-"), the number of strings, and for each point its name in hexadecimal and its value. */
#include "proto/line/line.h"
#include "proto/line/split.h"
#include "tests/unit/support/line_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void dump(struct hk_line *l, const char *line, size_t length)
{
  hk_line_parse(l, line, length);
  if (l->error) {
    printf("!\t%s at %" PRIu32 "\n", l->error, l->error_byte);
    return;
  }
  if (l->timed)
    printf("%" PRId64, l->time);
  else
    printf("-");
  printf("\t%" PRIu32, l->strings);
  for (uint32_t i = 0; i < l->n; i++) {
    char buffer[HK_NAME_MAX];
    uint32_t n;
    const char *name = line_name(l, i, buffer, &n);
    printf("\t");
    for (uint32_t k = 0; k < n; k++)
      printf("%02x", (unsigned)(uint8_t)name[k]);
    printf("=%.17g", l->points[i].value);
  }
  printf("\n");
}

int main(int argc, char **argv)
{
  static struct hk_line l;
  struct hk_splitter s = { .max_line = HK_LINE_MAX };
  char data[997];
  const char *line;
  size_t length, n;
  l.unit = argc > 1 ? hk_precision_parse(argv[1]) : 1;
  if (l.unit == 0)
    return 2;
  while ((n = fread(data, 1, sizeof data, stdin)) > 0) {
    size_t used = 0;
    int status;
    while ((status = hk_splitter_next(&s, data, n, &used, &line, &length)) != HK_LINE_NONE) {
      if (status == HK_LINE_WHOLE)
        dump(&l, line, length);
      else
        printf("!\ttoo long\n");
    }
  }
  if (hk_splitter_end(&s, &line, &length) == HK_LINE_WHOLE)
    dump(&l, line, length);
  hk_splitter_free(&s);
  return 0;
}
