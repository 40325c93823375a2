/* See read_line.h. */
#include "daemon/base/read_line.h"

size_t hk_read_line(FILE *file, char *out, size_t size, bool *nul)
{
  size_t n = 0;
  int c = 0;
  *nul = false;
  while (n + 1 < size && c != '\n' && (c = getc(file)) != EOF) {
    *nul |= c == 0;
    out[n++] = (char)c;
  }
  out[n] = 0;
  return n;
}
