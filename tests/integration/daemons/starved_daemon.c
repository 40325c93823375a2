/* hankeld with an allocation, or a call on a file, that fails on order.
 *
 * Memory: what it asks of malloc and the like, libuv for it included, is counted from the start,
 * and number $HANKELD_STARVE gets nothing; with $HANKELD_STARVE_MORE = M the M after it get nothing either. It says so on
 * standard error, `starved N`, and at its end how many there were: `allocations N`. With $HANKELD_STARVE_OPENSSL set those of
 * OpenSSL are among them.
 *
 * Files: the calls of daemon/base/disk.h are counted too. $HANKELD_DISK = "N ERRNO M": number N fails with that errno, and so
 * do the M after it; a write that fails has written half of its bytes. Reads of as many bytes one after the other count as one:
 * half of all calls are those of one loop. `faulted N`, and at the end `calls N M`: N in all, M of them before it was ready.
 *
 * The calls are caught by the linker (--wrap), so this works under a sanitizer too; calls that other libraries make are not
 * caught. */
#include "daemon/base/disk.h"
#include "daemon/base/systemd.h"
#include "daemon/server/program.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef HK_HAVE_TLS
#include <openssl/crypto.h>
#endif

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

/* --- files --- */

extern int __real_hk_disk_folder(const struct hk_disk *disk, int in, const char *path, int *out);
extern int __real_hk_disk_lock(const struct hk_disk *disk, int folder, int *out);
extern int __real_hk_disk_create(const struct hk_disk *disk, int folder, const char *name, int *out);
extern int __real_hk_disk_open(const struct hk_disk *disk, int folder, const char *name, int *out, uint64_t *size);
extern int __real_hk_disk_write(const struct hk_disk *disk, int file, const void *data, size_t size);
extern int __real_hk_disk_read(const struct hk_disk *disk, int file, uint64_t at, void *data, size_t size);
extern int __real_hk_disk_sync(const struct hk_disk *disk, int file);
extern int __real_hk_disk_sync_folder(const struct hk_disk *disk, int folder);
extern int __real_hk_disk_cut(const struct hk_disk *disk, int folder, const char *name, uint64_t size);
extern int __real_hk_disk_rename(const struct hk_disk *disk, int folder, const char *from, const char *to);
extern int __real_hk_disk_remove(const struct hk_disk *disk, int folder, const char *name);
extern int __real_hk_disk_list(const struct hk_disk *disk, int folder, const char *stem, const char *suffix, uint64_t **numbers,
                               size_t *n);
int __wrap_hk_disk_folder(const struct hk_disk *disk, int in, const char *path, int *out);
int __wrap_hk_disk_lock(const struct hk_disk *disk, int folder, int *out);
int __wrap_hk_disk_create(const struct hk_disk *disk, int folder, const char *name, int *out);
int __wrap_hk_disk_open(const struct hk_disk *disk, int folder, const char *name, int *out, uint64_t *size);
int __wrap_hk_disk_write(const struct hk_disk *disk, int file, const void *data, size_t size);
int __wrap_hk_disk_read(const struct hk_disk *disk, int file, uint64_t at, void *data, size_t size);
int __wrap_hk_disk_sync(const struct hk_disk *disk, int file);
int __wrap_hk_disk_sync_folder(const struct hk_disk *disk, int folder);
int __wrap_hk_disk_cut(const struct hk_disk *disk, int folder, const char *name, uint64_t size);
int __wrap_hk_disk_rename(const struct hk_disk *disk, int folder, const char *from, const char *to);
int __wrap_hk_disk_remove(const struct hk_disk *disk, int folder, const char *name);
int __wrap_hk_disk_list(const struct hk_disk *disk, int folder, const char *stem, const char *suffix, uint64_t **numbers,
                        size_t *n);

static atomic_ulong disk_calls;
static atomic_size_t reading; /* bytes of the last call, if it was a read that did not fail */
static unsigned long disk_first, disk_more;
static int disk_error;

/* 0, or the negative errno that this call is to fail with. */
static int faulted(void)
{
  atomic_store(&reading, 0);
  const unsigned long call = atomic_fetch_add(&disk_calls, 1) + 1;
  if (disk_first == 0 || call < disk_first || call > disk_first + disk_more)
    return 0;
  char line[64];
  const int n = snprintf(line, sizeof line, "faulted %lu\n", call);
  return write(STDERR_FILENO, line, (size_t)n) > 0 ? -disk_error : 0;
}

int __wrap_hk_disk_folder(const struct hk_disk *disk, int in, const char *path, int *out)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_folder(disk, in, path, out);
}

int __wrap_hk_disk_lock(const struct hk_disk *disk, int folder, int *out)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_lock(disk, folder, out);
}

int __wrap_hk_disk_create(const struct hk_disk *disk, int folder, const char *name, int *out)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_create(disk, folder, name, out);
}

int __wrap_hk_disk_open(const struct hk_disk *disk, int folder, const char *name, int *out, uint64_t *size)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_open(disk, folder, name, out, size);
}

int __wrap_hk_disk_write(const struct hk_disk *disk, int file, const void *data, size_t size)
{
  const int status = faulted();
  if (status == 0)
    return __real_hk_disk_write(disk, file, data, size);
  (void)__real_hk_disk_write(disk, file, data, size / 2);
  return status;
}

int __wrap_hk_disk_read(const struct hk_disk *disk, int file, uint64_t at, void *data, size_t size)
{
  const int status = atomic_load(&reading) == size ? 0 : faulted();
  atomic_store(&reading, status == 0 ? size : 0);
  return status != 0 ? status : __real_hk_disk_read(disk, file, at, data, size);
}

int __wrap_hk_disk_sync(const struct hk_disk *disk, int file)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_sync(disk, file);
}

int __wrap_hk_disk_sync_folder(const struct hk_disk *disk, int folder)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_sync_folder(disk, folder);
}

int __wrap_hk_disk_cut(const struct hk_disk *disk, int folder, const char *name, uint64_t size)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_cut(disk, folder, name, size);
}

int __wrap_hk_disk_rename(const struct hk_disk *disk, int folder, const char *from, const char *to)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_rename(disk, folder, from, to);
}

int __wrap_hk_disk_remove(const struct hk_disk *disk, int folder, const char *name)
{
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_remove(disk, folder, name);
}

int __wrap_hk_disk_list(const struct hk_disk *disk, int folder, const char *stem, const char *suffix, uint64_t **numbers,
                        size_t *n)
{
  *numbers = NULL;
  *n = 0;
  const int status = faulted();
  return status != 0 ? status : __real_hk_disk_list(disk, folder, stem, suffix, numbers, n);
}

extern void __real_hk_notify(const char *state);
void __wrap_hk_notify(const char *state);

static unsigned long start_calls;

void __wrap_hk_notify(const char *state)
{
  if (start_calls == 0 && strcmp(state, "READY=1") == 0)
    start_calls = atomic_load(&disk_calls);
  __real_hk_notify(state);
}

#ifdef HK_HAVE_TLS
static void *openssl_malloc(size_t size, const char *file, int line)
{
  (void)file, (void)line;
  return __wrap_malloc(size);
}

static void *openssl_realloc(void *memory, size_t size, const char *file, int line)
{
  (void)file, (void)line;
  return __wrap_realloc(memory, size);
}

static void openssl_free(void *memory, const char *file, int line)
{
  (void)file, (void)line;
  free(memory);
}

static bool count_openssl(void)
{
  return !getenv("HANKELD_STARVE_OPENSSL") || CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) == 1;
}
#else
static bool count_openssl(void)
{
  return !getenv("HANKELD_STARVE_OPENSSL");
}
#endif

int main(int argc, char **argv)
{
  const char *order = getenv("HANKELD_STARVE"), *beyond = getenv("HANKELD_STARVE_MORE");
  first = order ? strtoul(order, NULL, 10) : 0;
  more = beyond ? strtoul(beyond, NULL, 10) : 0;
  const char *disk = getenv("HANKELD_DISK");
  if (disk && sscanf(disk, "%lu %d %lu", &disk_first, &disk_error, &disk_more) != 3) {
    fprintf(stderr, "HANKELD_DISK is not `N ERRNO M`\n");
    return 1;
  }
  if (!count_openssl()) {
    fprintf(stderr, "HANKELD_STARVE_OPENSSL: the allocations of OpenSSL cannot be had\n");
    return 1;
  }
  const int status = hk_program(argc, argv, hk_backend_kinds);
  fprintf(stderr, "allocations %lu\ncalls %lu %lu\n", atomic_load(&calls), atomic_load(&disk_calls), start_calls);
  return status;
}
