/* hankeld with an allocation that fails on order: what it asks of malloc and its kin, libuv for it included, is counted from the start,
 * and number $HANKELD_STARVE gets nothing; with $HANKELD_STARVE_MORE = M the M after it get nothing either. It says so on standard
 * error, `starved N`, and at its end how many there were: `allocations N`.
 *
 * The calls are caught by the linker (--wrap), so this works under a sanitizer too; calls that other libraries make are not caught. */
#include "daemon/program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__real_malloc(size_t size);
extern void *__real_calloc(size_t n, size_t size);
extern void *__real_realloc(void *memory, size_t size);
extern void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static atomic_ulong calls;
static unsigned long first, more;

static bool starved(void)
{
  const unsigned long call = atomic_fetch_add(&calls, 1) + 1;
  if (first == 0 || call < first || call > first + more)
    return false;
  char line[64];
  const int n = snprintf(line, sizeof line, "starved %lu\n", call);
  return write(STDERR_FILENO, line, (size_t)n) > 0;
}

void *__wrap_malloc(size_t size)
{
  return starved() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
  return starved() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
  return starved() ? NULL : __real_realloc(memory, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
  return starved() ? NULL : __real_aligned_alloc(alignment, size);
}

int main(int argc, char **argv)
{
  const char *order = getenv("HANKELD_STARVE"), *beyond = getenv("HANKELD_STARVE_MORE");
  first = order ? strtoul(order, NULL, 10) : 0;
  more = beyond ? strtoul(beyond, NULL, 10) : 0;
  const int status = hk_program(argc, argv, hk_backend_kinds);
  fprintf(stderr, "allocations %lu\n", atomic_load(&calls));
  return status;
}
