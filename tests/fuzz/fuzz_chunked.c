/* Fuzz target: bodies in chunks. The first byte of the input selects the pieces in which the rest comes; the decoded body must
 * not depend on them. */
#include "daemon/web/web_chunked.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
  if (!good)
    abort();
}

/* The decoded body, and whether it ended. */
static int take(const uint8_t *data, size_t size, size_t piece, struct hk_buffer *out)
{
  struct hk_chunked c = { 0 };
  int status = 0;
  for (size_t at = 0; at < size && status == 0; at += piece) {
    const size_t n = piece < size - at ? piece : size - at, before = out->size;
    char *copy = malloc(n);
    memcpy(copy, data + at, n);
    status = hk_chunked_take(&c, copy, n, out);
    free(copy);
    require(out->size - before <= n);
  }
  if (status == 1)
    require(hk_chunked_take(&c, "more", 4, out) == 1);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_buffer whole = { 0 }, pieces = { 0 };
  if (size < 2)
    return 0;
  const int a = take(data + 1, size - 1, size, &whole), b = take(data + 1, size - 1, 1u + data[0] % 16, &pieces);
  require(a == b && whole.size == pieces.size && (whole.size == 0 || memcmp(whole.data, pieces.data, whole.size) == 0));
  hk_buffer_free(&whole);
  hk_buffer_free(&pieces);
  return 0;
}
