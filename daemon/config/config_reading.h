/* A configuration that is being read, shared by the reader (config_reader.h) and the kinds of sections (config_section_kinds.h).
 * Thread: one. */
#ifndef HK_CONFIG_READING_H
#define HK_CONFIG_READING_H

#include "daemon/config/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define HK_CONFIG_KEYS_MAX 128     /* different keys of one section */
#define HK_CONFIG_FAULTS_TOLD 100u /* maximum number of faults that are reported one by one */

/* A configuration that is being read. */
struct hk_config_reading {
  struct hk_config *config;
  FILE *file;
  const char *name;
  hk_config_fault *fault;
  void *arg;
  uint32_t line, faults;
  const struct hk_config_kind *section; /* NULL: before the first section, or in a bad one */
  bool bad;                             /* invalid section: its keys are ignored */
  uint32_t section_line, faults_before; /* of this section: its first line, the number of faults before it */
  bool expected;                        /* inih must report the line given to it as a key */
  bool any_daemon;
  char seen[HK_CONFIG_KEYS_MAX][24]; /* keys of this section */
  uint32_t n_seen;
  struct hk_detectors_draft draft;
};

/* A kind of section. Every error is reported, and reading continues. */
struct hk_config_kind {
  const char *word;                                                              /* [WORD NAME] */
  bool (*begin)(struct hk_config_reading *r, const char *name);                  /* false: its keys are ignored */
  void (*key)(struct hk_config_reading *r, const char *name, const char *value); /* each once */
  void (*end)(struct hk_config_reading *r); /* errors of the whole configuration; may be NULL */
};

/* Reports a fault; line 0: of the file as a whole. After HK_CONFIG_FAULTS_TOLD of them says once that there are more. */
void hk_config_complain(struct hk_config_reading *r, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Whether this section has a key with this name. */
bool hk_config_seen(const struct hk_config_reading *r, const char *name);

#endif
