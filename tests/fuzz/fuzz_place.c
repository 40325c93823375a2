/* Fuzz target: the file with a receiver's position. If the first byte of the input is odd, the checksum is corrected first. A
 * position that is read is sound, and is the same when it is written and read again. */
#include "daemon/durable/place.h"
#include "tests/fuzz/files.h"

#include <xxhash.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  uint8_t bytes[2 * HK_PLACE_BYTES];
  static const struct hk_disk disk = { 0 };
  struct hk_place place, back;
  if (size < 1 || size > sizeof bytes)
    return 0;
  memcpy(bytes, data + 1, size - 1);
  if ((data[0] & 1) && size - 1 == HK_PLACE_BYTES) {
    const uint64_t checksum = XXH3_64bits(bytes, HK_PLACE_BYTES - 8);
    memcpy(bytes + HK_PLACE_BYTES - 8, &checksum, 8);
  }
  const int folder = fuzz_folder("notify-x.place", bytes, size - 1);
  const bool good = hk_place_decode(bytes, size - 1, &place);
  require((hk_place_read(&disk, folder, "notify", "x", &back) == 0) == good);
  if (!good)
    return 0;
  require(back.position == place.position && place.until >= place.position);
  require(hk_place_write(&disk, folder, "notify", "x", &place) == 0 && hk_place_read(&disk, folder, "notify", "x", &back) == 0);
  require(memcmp(&place, &back, sizeof place) == 0);
  return 0;
}
