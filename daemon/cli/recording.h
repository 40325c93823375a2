/* What `feed` and `replay` read: one file, or several whose points are put in the order of their times.
 *
 * Of several files the sensors are named FILE.NAME, so that columns of the same name stay apart; a prefix is put before the names
 * in its place, and an empty one leaves them as they are: the files are parts of one recording then. A folder stands for the
 * files in it (.csv, .tsv, .txt and .dat, also packed). Thread: the caller's. */
#ifndef HK_RECORDING_H
#define HK_RECORDING_H

#include "daemon/cli/csv.h"

#define HK_RECORDING_FILES 500 /* open at once */

struct hk_recordings;

/* `path` of config is not looked at; prefix NULL: none was given. 0 and *out, or a negative errno with a message. paths outlive
 * it. */
int hk_recording_open(struct hk_recordings **out, char *const *paths, uint32_t n, const struct hk_csv_config *config,
                      const char *prefix, char *error, size_t size);
void hk_recording_close(struct hk_recordings *recording); /* NULL is allowed */

/* As the functions of csv.h of these names. Several files have no time column that could be named. */
uint32_t hk_recording_sensors(const struct hk_recordings *recording);
bool hk_recording_sensors_known(const struct hk_recordings *recording);
const char *hk_recording_sensor(const struct hk_recordings *recording, uint32_t sensor);
int hk_recording_next(struct hk_recordings *recording, struct hk_csv_row *row, char *error, size_t size);
bool hk_recording_ready(const struct hk_recordings *recording);
int hk_recording_fd(const struct hk_recordings *recording);
double hk_recording_progress(const struct hk_recordings *recording);
uint64_t hk_recording_bad(const struct hk_recordings *recording);

/* Files that are read, and each. */
uint32_t hk_recording_files(const struct hk_recordings *recording);
const struct hk_csv *hk_recording_file(const struct hk_recordings *recording, uint32_t file, const char **path);

#endif
