/* Fuzz target: the file of marks. If the first byte of the input is odd, checksums are corrected first. Marks that are read are
 * sound, and those written after them are read back. */
#include "daemon/durable/marks.h"
#include "tests/fuzz/files.h"

#include <errno.h>
#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 15, PLACE = 128 };

static void mend(uint8_t *bytes, size_t size)
{
  for (size_t at = 0; at + PLACE <= size; at += PLACE) {
    const uint32_t version_index[2] = { 1, (uint32_t)(at / PLACE / 2) };
    memcpy(bytes + at, "HKMARKS\n", 8);
    memcpy(bytes + at + 8, version_index, 8);
    const uint64_t checksum = XXH3_64bits(bytes + at, PLACE - 8);
    memcpy(bytes + at + PLACE - 8, &checksum, 8);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static uint8_t bytes[MOST];
  static const struct hk_disk disk = { 0 };
  struct hk_journal_mark mark[HK_MARKS], back;
  bool good[HK_MARKS];
  struct hk_marks *marks;
  if (size < 1 || size > MOST)
    return 0;
  memcpy(bytes, data + 1, size - 1);
  if (data[0] & 1)
    mend(bytes, size - 1);
  const int folder = fuzz_folder(HK_MARKS_FILE, bytes, size - 1);
  require(hk_marks_read(&disk, folder, mark, good) == 0);
  require(hk_marks_open(&marks, &disk, folder) == 0);
  for (uint32_t i = 0; i < HK_MARKS; i++) {
    require(hk_marks_get(marks, i, &back) == good[i]);
    require(back.position == mark[i].position && back.reserved >= back.position && back.segment == mark[i].segment);
  }
  const uint32_t i = data[0] % HK_MARKS;
  const struct hk_journal_mark put = { .position = size, .segment = 3 };
  const int status = hk_marks_put(marks, i, &put);
  hk_marks_free(marks);
  if (status == -EOVERFLOW)
    return 0;
  require(status == 0);
  require(hk_marks_open(&marks, &disk, folder) == 0);
  require(hk_marks_get(marks, i, &back) && back.position == size && back.segment == 3);
  hk_marks_free(marks);
  return 0;
}
