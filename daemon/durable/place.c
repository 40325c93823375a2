#include "daemon/durable/place.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "HKPLACE\n"
#define VERSION 1
#define POSITION_MAX ((uint64_t)1 << 62)

struct image {
  char magic[8];
  uint32_t version, zero;
  uint64_t position, until, id;
  uint64_t held; /* 0 in files from before there were quiet hours */
  uint64_t unused;
  uint64_t checksum; /* XXH3 of the bytes before */
};
_Static_assert(sizeof(struct image) == HK_PLACE_BYTES, "no padding");

bool hk_place_decode(const void *bytes, size_t size, struct hk_place *out)
{
  struct image i;
  if (size != sizeof i)
    return false;
  memcpy(&i, bytes, sizeof i);
  if (memcmp(i.magic, MAGIC, sizeof i.magic) != 0 || i.version != VERSION ||
      i.checksum != XXH3_64bits(&i, offsetof(struct image, checksum)) || i.until < i.position || i.until > POSITION_MAX ||
      i.held > i.until)
    return false;
  *out = (struct hk_place){ .position = i.position, .until = i.until, .held = i.held, .id = i.id };
  return true;
}

int hk_place_read(const struct hk_disk *disk, int folder, const char *kind, const char *name, struct hk_place *out)
{
  char file_name[HK_DISK_NAME_MAX * 2], bytes[HK_PLACE_BYTES];
  uint64_t size;
  int file;
  snprintf(file_name, sizeof file_name, "%s-%s.place", kind, name);
  int status = hk_disk_open(disk, folder, file_name, &file, &size);
  if (status != 0)
    return status;
  status = size == sizeof bytes ? hk_disk_read(disk, file, 0, bytes, sizeof bytes) : -EBADMSG;
  close(file);
  return status != 0 ? status : hk_place_decode(bytes, sizeof bytes, out) ? 0 : -EBADMSG;
}

int hk_place_write(const struct hk_disk *disk, int folder, const char *kind, const char *name, const struct hk_place *place)
{
  struct image i = {
    .magic = MAGIC, .version = VERSION, .position = place->position, .until = place->until, .id = place->id, .held = place->held
  };
  char file_name[HK_DISK_NAME_MAX * 2], beside[HK_DISK_NAME_MAX * 2 + 8];
  i.checksum = XXH3_64bits(&i, offsetof(struct image, checksum));
  snprintf(file_name, sizeof file_name, "%s-%s.place", kind, name);
  snprintf(beside, sizeof beside, "%s.new", file_name);
  return hk_disk_replace(disk, folder, file_name, beside, &i, sizeof i, NULL);
}
