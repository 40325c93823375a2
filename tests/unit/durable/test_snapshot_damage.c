/* Snapshots: changed, cut and mixed files are refused, and files of another version. */
#include "daemon/durable/snapshot_format.h"
#include "daemon/durable/snapshot_read.h"
#include "daemon/durable/snapshot_write.h"
#include "tests/unit/support/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static uint8_t *load(const struct world *w, const char *name, size_t *size)
{
  char path[128];
  struct stat now;
  snprintf(path, sizeof path, "%s/%s", w->path, name);
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fstat(fileno(f), &now), 0);
  uint8_t *bytes = malloc((size_t)now.st_size);
  assert_non_null(bytes);
  *size = fread(bytes, 1, (size_t)now.st_size, f);
  assert_int_equal(*size, now.st_size);
  fclose(f);
  return bytes;
}

static void store(const struct world *w, const char *name, const uint8_t *bytes, size_t size)
{
  char path[128];
  snprintf(path, sizeof path, "%s/%s", w->path, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, size, f), size);
  fclose(f);
}

static void every_byte_counts(void **state)
{
  struct world w;
  size_t size;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size);
  const int file = openat(w.folder, NAME, O_WRONLY);
  assert_true(file >= 0);
  for (size_t i = 0; i < size; i++)
    for (uint8_t flip = 1; flip; flip = flip == 1 ? 0x80 : 0) {
      bytes[i] ^= flip;
      assert_int_equal(pwrite(file, &bytes[i], 1, (off_t)i), 1);
      why[0] = 0;
      const int status = read_one(&w, NAME, &seen, why, sizeof why);
      if (status != -EBADMSG || !why[0])
        fail_msg("byte %zu of %zu changed: %d, %s", i, size, status, why);
      bytes[i] ^= flip;
      assert_int_equal(pwrite(file, &bytes[i], 1, (off_t)i), 1);
    }
  assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), 0);
  close(file);
  free(bytes);
  end(&w);
}

static void every_length_counts(void **state)
{
  struct world w;
  size_t size;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size), *more = calloc(1, size + 64);
  assert_non_null(more);
  const int file = openat(w.folder, NAME, O_WRONLY);
  assert_true(file >= 0);
  for (size_t cut = size; cut-- > 0;) {
    assert_int_equal(ftruncate(file, (off_t)cut), 0);
    const int status = read_one(&w, NAME, &seen, why, sizeof why);
    if (status != -EBADMSG)
      fail_msg("cut to %zu of %zu bytes: %d", cut, size, status);
  }
  close(file);
  memcpy(more, bytes, size);
  for (size_t behind = 1; behind <= 64; behind++) {
    store(&w, NAME, more, size + behind);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
  }
  free(bytes);
  free(more);
  end(&w);
}

/* A missing or repeated section is noticed, even if each section is good by itself. */
static void sections_belong_together(void **state)
{
  struct world w;
  struct hk_snapshot_reader *reader;
  struct hk_snapshot_part part;
  size_t size, at[16], n = 0;
  uint32_t seen;
  char why[128];
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  uint8_t *bytes = load(&w, NAME, &size), *other = malloc(2 * size);
  assert_non_null(other);
  assert_int_equal(hk_snapshot_open(&reader, &w.disk, w.folder, NAME, why, sizeof why), 0);
  while (hk_snapshot_next(reader, &part) == 1)
    at[n++] = part.at;
  hk_snapshot_read_close(reader);
  at[n] = size;
  assert_int_equal(n, 8);
  for (size_t i = 0; i < n; i++) {
    memcpy(other, bytes, at[i]);
    memcpy(other + at[i], bytes + at[i + 1], size - at[i + 1]);
    store(&w, NAME, other, size - (at[i + 1] - at[i]));
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
    memcpy(other, bytes, at[i + 1]);
    memcpy(other + at[i + 1], bytes + at[i], size - at[i]);
    store(&w, NAME, other, size + at[i + 1] - at[i]);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
  }
  free(bytes);
  free(other);
  end(&w);
}

/* Another version, with a good checksum, is reported as such. */
static void versions_are_named(void **state)
{
  struct world w;
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  size_t size;
  uint32_t seen;
  char why[128];
  uint8_t *bytes = load(&w, NAME, &size);
  for (uint32_t version = 0; version < 5; version += 1 + (version == HK_SNAPSHOT_VERSION - 1)) {
    struct hk_snapshot_head head;
    memcpy(&head, bytes, sizeof head);
    head.version = version;
    head.checksum = hk_snapshot_checksum(&head);
    memcpy(bytes, &head, sizeof head);
    store(&w, NAME, bytes, size);
    assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EPROTONOSUPPORT);
    char number[16];
    snprintf(number, sizeof number, "version %u", version);
    assert_non_null(strstr(why, number));
  }
  free(bytes);
  end(&w);
}

/* A later hankeld may write sections that this one does not know: their checksums are right, so the file is not damaged, and no
 * older one takes its place. */
static void sections_of_later_builds_are_named(void **state)
{
  struct world w;
  struct hk_snapshot_head first;
  struct hk_part_head head;
  (void)state;
  begin(&w);
  assert_int_equal(write_one(&w), 0);
  size_t size;
  uint32_t seen;
  char why[128];
  uint8_t *bytes = load(&w, NAME, &size);
  memcpy(&first, bytes, sizeof first);
  memcpy(&head, bytes + sizeof first, sizeof head);
  head.type = HK_PART_PROVISIONAL + 1;
  head.checksum = hk_part_checksum(&head, bytes + sizeof first + sizeof head, first.salt);
  memcpy(bytes + sizeof first, &head, sizeof head);
  store(&w, NAME, bytes, size);
  assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EPROTONOSUPPORT);
  assert_string_equal(why, "section 1 is of type 9, of a later hankeld");
  bytes[sizeof first]++; /* without the right checksum it is damaged */
  store(&w, NAME, bytes, size);
  assert_int_equal(read_one(&w, NAME, &seen, why, sizeof why), -EBADMSG);
  free(bytes);
  end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_byte_counts),
    cmocka_unit_test(every_length_counts),
    cmocka_unit_test(sections_belong_together),
    cmocka_unit_test(versions_are_named),
    cmocka_unit_test(sections_of_later_builds_are_named),
  };
  return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
