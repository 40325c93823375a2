/* Reads configurations. */
#ifndef HK_CONFIG_READER_H
#define HK_CONFIG_READER_H

#include "daemon/config/config.h"

#include <stdio.h>

enum {
  HK_CONFIG_FILE = 0,     /* regular files only */
  HK_CONFIG_PIPE = 10000, /* also a FIFO, as of a shell's <(command): maximum time for reading it, ms */
};

/* Reads a whole configuration, and reports every error in it, not only the first, as `FILE:LINE: ERROR`. Returns 0 and *out
 * (freed with hk_config_free), or -EINVAL after calling `fault`, or another negative errno (also reported). Without a [listen]
 * section there are the four default listeners. */
int hk_config_read(struct hk_config *out, FILE *file, const char *name, hk_config_fault *fault, void *arg);
/* The same for the file at a path, of at most 16 MiB, which is read whole first; whatever the path is, waits at most `patience`.
 * patience: HK_CONFIG_FILE or HK_CONFIG_PIPE. Thread: any. */
int hk_config_load(struct hk_config *out, const char *path, int patience, hk_config_fault *fault, void *arg);

#endif
