/* Input of `feed` and `replay`: a file, or several files, whose points are merged by time.
 *
 * The sensors of several files are named FILE.NAME, so that equal column names remain distinct. A prefix replaces FILE; with an
 * empty prefix names are unchanged, and the files are parts of one recording. A folder stands for its files (.csv, .tsv, .txt and
 * .dat, also compressed). Thread: the caller's. */
#ifndef HK_RECORDING_H
#define HK_RECORDING_H

#include "daemon/cli/csv.h"

#define HK_RECORDING_FILES 500 /* maximum, all open together */

struct hk_recordings;

/* Opens the files; ignores `path` of config. prefix: NULL for none. Returns 0 and *out, or a negative errno with a message.
 * `paths` must outlive *out. */
int hk_recording_open(struct hk_recordings **out, char *const *paths, uint32_t n, const struct hk_csv_config *config,
                      const char *prefix, char *error, size_t size);
void hk_recording_close(struct hk_recordings *recording); /* NULL is allowed */

/* As the functions of csv.h with these names. */
uint32_t hk_recording_sensors(const struct hk_recordings *recording);
bool hk_recording_sensors_known(const struct hk_recordings *recording);
const char *hk_recording_sensor(const struct hk_recordings *recording, uint32_t sensor);
int hk_recording_next(struct hk_recordings *recording, struct hk_csv_row *row, char *error, size_t size);
bool hk_recording_ready(const struct hk_recordings *recording);
int hk_recording_fd(const struct hk_recordings *recording);
double hk_recording_progress(const struct hk_recordings *recording);
uint64_t hk_recording_bad(const struct hk_recordings *recording);

/* Number of files, and each file. */
uint32_t hk_recording_files(const struct hk_recordings *recording);
const struct hk_csv *hk_recording_file(const struct hk_recordings *recording, uint32_t file, const char **path);

#endif
