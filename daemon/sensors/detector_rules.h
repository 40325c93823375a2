/* Sections: the detectors of a configuration in the order of matching, each with its number in backends and registry.
 *
 * They are immutable: another configuration has other sections, and these are freed with the last reference. Thread: any. */
#ifndef HK_DETECTOR_RULES_H
#define HK_DETECTOR_RULES_H

#include "daemon/config/config.h"
#include "proto/wire/name.h"
#include "proto/wire/payload.h"

#include <stdbool.h>
#include <stddef.h>

struct hk_glob;
struct hk_sections;

/* Copies the configuration's detectors. Returns 0 and *out with one reference, or -ENOMEM. */
int hk_sections_new(struct hk_sections **out, const struct hk_config *config);
struct hk_sections *hk_sections_hold(struct hk_sections *sections); /* adds a reference */
void hk_sections_release(struct hk_sections *sections);             /* NULL is allowed */

/* A detector, and the numbers of its companions, which have the section's further algorithms. */
struct hk_section {
  struct hk_glob *glob;
  uint32_t number;
  uint32_t n_companions;
  uint32_t companion[HK_COMPANIONS];
  char suffix[HK_COMPANIONS][HK_CONFIG_NAME_MAX]; /* of their names, behind that of the sensor */
};

/* The first section whose glob matches a name; NULL: none. Valid as long as its sections. */
const struct hk_section *hk_sections_find(const struct hk_sections *sections, const char *name, size_t length);
/* The detector of a number; NULL: none. */
const struct hk_section *hk_sections_of(const struct hk_sections *sections, uint32_t number);
/* The group, or the field, of a sensor, and the text that the capture matches in its name: the first, shortest possible one; not
 * empty. */
struct hk_machine_name {
  const char *group;
  const char *capture;
  size_t length;
  uint32_t number; /* of the detector of the group's series */
  /* Valid as long as the sections: */
  const struct hk_group_rule *rule;
  const struct hk_field_rule *field; /* of a field; NULL: a group */
  const struct hk_field_file *file;  /* of a field: the contents of its file */
  const struct hk_field_series *series;
  const char *first; /* of a second group: the name of its first; else NULL */
  const char
      *beside; /* for groups and fields that may share sensors: the name by which all of these find their shard; else NULL */
};
/* The derived sensors of each member of a field: their detectors, and the suffixes of their names. */
struct hk_field_series {
  uint32_t n, number[HK_ALGORITHMS];
  char suffix[HK_ALGORITHMS][HK_CONFIG_NAME_MAX];
};
bool hk_sections_field(const struct hk_sections *sections, const char *name, size_t length, struct hk_machine_name *out);
/* Whether a name is kept for a series that the daemon makes, or would make: of a sensor's companion, of a field's member, or of a
 * group or field itself, GROUP#any. */
bool hk_sections_derived(const struct hk_sections *sections, const char *name, size_t length);
/* The machine whose own series has this name, GROUP#CAPTURE. */
bool hk_sections_machine(const struct hk_sections *sections, const char *name, size_t length, struct hk_machine_name *out);
bool hk_sections_group(const struct hk_sections *sections, const char *name, size_t length, struct hk_machine_name *out);
/* The second group of a sensor: the novelty of a group with statistic = both. Its machines are those of the group. */
bool hk_sections_second(const struct hk_sections *sections, const char *name, size_t length, struct hk_machine_name *out);
/* Writes the name of a machine's series, NAME#CAPTURE, without a 0. Returns its length, or 0: it is too long. */
size_t hk_sections_series(const struct hk_machine_name *machine, char out[HK_NAME_MAX]);
/* Whether there are groups, or fields. hk_sections_group_by: whether the series of a group or field, or its members' derived
 * series, have this detector; then *out is that group or field, without a capture. */
bool hk_sections_grouped(const struct hk_sections *sections);
bool hk_sections_seconded(const struct hk_sections *sections);
bool hk_sections_fielded(const struct hk_sections *sections);
bool hk_sections_group_by(const struct hk_sections *sections, uint32_t number, struct hk_machine_name *out);

/* The text by which the series of a group or field, of this detector, finds its shard and its partition: series of a machine's
 * groups share it. */
struct hk_string hk_sections_home(const struct hk_sections *sections, uint32_t number, struct hk_string series,
                                  char room[HK_NAME_MAX]);

/* Whether any section has companions. */
bool hk_sections_accompanied(const struct hk_sections *sections);

/* The next pair of a group and a field that may have sensors in common, with a line that explains the effect with several
 * devices. False: none. *at: 0 for the first. */
bool hk_sections_share(const struct hk_config *config, uint32_t *at, char *line, size_t size);

/* Whether detector i of a configuration gets no sensor, because an earlier one is known to match everything that it matches; then
 * writes a line that explains this. False for the detector of a field's derived series. */
bool hk_sections_unreached(const struct hk_config *config, uint32_t i, char *line, size_t size);

#endif
