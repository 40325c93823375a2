/* A build without libarchive refuses compressed recordings, and names the command that decompresses them. */
#include "daemon/cli/csv_unpack.h"

#include <errno.h>
#include <stdio.h>

int hk_unpack_open(struct hk_unpack **out, hk_unpack_source *source, void *arg, char *error, size_t size)
{
  (void)out;
  (void)source;
  (void)arg;
  snprintf(error, size, "packed, and this build has no libarchive: unpack it first, as in zcat FILE | hankel feed -");
  return -ENOTSUP;
}

void hk_unpack_close(struct hk_unpack *unpack)
{
  (void)unpack;
}

ssize_t hk_unpack_read(struct hk_unpack *unpack, char *to, size_t room, char *error, size_t size)
{
  (void)unpack;
  (void)to;
  (void)room;
  (void)error;
  (void)size;
  return -ENOTSUP;
}
