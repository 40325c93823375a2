/* How packed files begin. */
#include "daemon/cli/csv_magic.h"

#include <string.h>

bool hk_magic_packed(const unsigned char *head, size_t n, bool *more)
{
  static const struct {
    const char *bytes;
    size_t n;
  } kinds[] = { { "\x1f\x8b", 2 }, { "\x28\xb5\x2f\xfd", 4 }, { "\xfd\x37zXZ", 5 }, { "BZh", 3 } };
  *more = false;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const size_t compared = n < kinds[i].n ? n : kinds[i].n;
    if (memcmp(head, kinds[i].bytes, compared) != 0)
      continue;
    if (n >= kinds[i].n)
      return true;
    *more = true;
  }
  return false;
}
