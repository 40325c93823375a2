/* Decompresses recordings with libarchive's filters over a raw stream. */
#include "daemon/cli/csv_unpack.h"

#include "cpu/library.h"
#include "cpu/sonames.h"

#include <archive.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ARCHIVE_CALLS(_)                                                                                                         \
  _(archive_, read_new)                                                                                                          \
  _(archive_, read_support_filter_gzip)                                                                                          \
  _(archive_, read_support_filter_zstd)                                                                                          \
  _(archive_, read_support_filter_xz)                                                                                            \
  _(archive_, read_support_filter_bzip2)                                                                                         \
  _(archive_, read_support_format_raw)                                                                                           \
  _(archive_, read_support_format_empty)                                                                                         \
  _(archive_, read_open)                                                                                                         \
  _(archive_, read_next_header)                                                                                                  \
  _(archive_, read_data)                                                                                                         \
  _(archive_, read_free)                                                                                                         \
  _(archive_, set_error)                                                                                                         \
  _(archive_, error_string)

static struct {
  ARCHIVE_CALLS(HK_LIBRARY_CALL)
} libarchive;
static struct hk_library archive_library = HK_LIBRARY(HK_SONAME_ARCHIVE, libarchive, ARCHIVE_CALLS);

struct hk_unpack {
  struct archive *archive;
  hk_unpack_source *source;
  void *arg;
  char packed[1 << 16];
};

static la_ssize_t more(struct archive *archive, void *arg, const void **out)
{
  struct hk_unpack *unpack = arg;
  const ssize_t got = unpack->source(unpack->arg, unpack->packed, sizeof unpack->packed);
  if (got < 0)
    libarchive.set_error(archive, (int)-got, "cannot be read");
  *out = unpack->packed;
  return got < 0 ? ARCHIVE_FATAL : got;
}

static int csv_unpack_wrong(struct hk_unpack *unpack, char *error, size_t size)
{
  const char *why = libarchive.error_string(unpack->archive);
  snprintf(error, size, "cannot be unpacked: %s", why ? why : "unknown");
  return -EINVAL;
}

int hk_unpack_open(struct hk_unpack **out, hk_unpack_source *source, void *arg, char *error, size_t size)
{
  char why[HK_LIBRARY_WHY];
  if (hk_library_load(&archive_library, why, sizeof why) != 0) {
    snprintf(error, size, "cannot be unpacked: %s", why);
    return -ELIBACC;
  }
  struct hk_unpack *unpack = calloc(1, sizeof *unpack);
  struct archive_entry *entry;
  if (!unpack || !(unpack->archive = libarchive.read_new())) {
    free(unpack);
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  unpack->source = source;
  unpack->arg = arg;
  struct archive *a = unpack->archive;
  if (libarchive.read_support_filter_gzip(a) < ARCHIVE_WARN || libarchive.read_support_filter_zstd(a) < ARCHIVE_WARN ||
      libarchive.read_support_filter_xz(a) < ARCHIVE_WARN || libarchive.read_support_filter_bzip2(a) < ARCHIVE_WARN ||
      libarchive.read_support_format_raw(a) < ARCHIVE_WARN || libarchive.read_support_format_empty(a) < ARCHIVE_WARN ||
      libarchive.read_open(a, unpack, NULL, more, NULL) < ARCHIVE_WARN) {
    const int status = csv_unpack_wrong(unpack, error, size);
    hk_unpack_close(unpack);
    return status;
  }
  const int status = libarchive.read_next_header(a, &entry);
  if (status < ARCHIVE_WARN && status != ARCHIVE_EOF) {
    const int code = csv_unpack_wrong(unpack, error, size);
    hk_unpack_close(unpack);
    return code;
  }
  *out = unpack;
  return 0;
}

void hk_unpack_close(struct hk_unpack *unpack)
{
  if (unpack && libarchive.read_free(unpack->archive) != ARCHIVE_OK)
    errno = 0; /* nothing was written, so nothing is lost */
  free(unpack);
}

ssize_t hk_unpack_read(struct hk_unpack *unpack, char *to, size_t room, char *error, size_t size)
{
  const la_ssize_t got = libarchive.read_data(unpack->archive, to, room);
  return got < 0 ? csv_unpack_wrong(unpack, error, size) : got;
}
