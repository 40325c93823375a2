/* Preloaded into a program: counts its calls of malloc and the like, and writes `allocations N` to standard error at the
 * program's end. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static atomic_ulong calls;

void *malloc(size_t size)
{
  atomic_fetch_add(&calls, 1);
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
  atomic_fetch_add(&calls, 1);
  return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
  atomic_fetch_add(&calls, 1);
  return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
  atomic_fetch_add(&calls, 1);
  return __libc_memalign(alignment, size);
}

__attribute__((destructor)) static void tell(void)
{
  fprintf(stderr, "allocations %lu\n", atomic_load(&calls));
}
