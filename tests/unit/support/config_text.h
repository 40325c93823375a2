/* Reading of configurations that are given as text, for tests. */
#ifndef HK_CONFIG_TEXT_H
#define HK_CONFIG_TEXT_H

#include "daemon/config/config_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct faults {
  char text[4096];
  unsigned n;
};

static inline void note(void *arg, const char *message)
{
  struct faults *f = arg;
  const size_t used = strlen(f->text);
  f->n++;
  snprintf(f->text + used, sizeof f->text - used, "%s\n", message); /* as much as there is room for */
}

static inline int read_text(struct hk_config *config, const char *text, struct faults *faults)
{
  *faults = (struct faults){ 0 };
  FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
  assert_non_null(file);
  const int status = hk_config_read(config, file, "x.conf", note, faults);
  fclose(file);
  return status;
}

static inline void expect_fault(const char *text, const char *expected)
{
  struct hk_config config;
  struct faults faults;
  assert_int_not_equal(read_text(&config, text, &faults), 0);
  if (!strstr(faults.text, expected))
    fail_msg("`%s` is not told of\n%s\nbut:\n%s", expected, text, faults.text);
}

#define DETECTOR "[detector all]\nmatch = *\n"

#endif
