#include "cpu/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns the library's handle; NULL: not to be had. */
static void *library_open(const char *file, int scope, char *why, size_t size)
{
  void *handle = dlopen(file, RTLD_NOW | RTLD_NODELETE | scope);
  const char *said = handle ? NULL : dlerror();
  const size_t length = strlen(file);
  if (said && strncmp(said, file, length) == 0 && strncmp(said + length, ": ", 2) == 0)
    said += length + 2; /* else it names another library, which this one needs */
  if (!handle)
    snprintf(why, size, "%s cannot be loaded: %s", file, said ? said : "unknown");
  return handle;
}

static int library_load(const struct hk_library *l, char *why, size_t size)
{
  void *handle = library_open(l->file, l->below ? RTLD_GLOBAL : RTLD_LOCAL, why, size);
  if (!handle)
    return -ELIBACC;
  char *to = l->calls;
  for (const char *name = l->names; *name; name += strlen(name) + 1) {
    void *function = dlsym(handle, name);
    if (!function) {
      snprintf(why, size, "%s is another version: it has no %s", l->file, name);
      return -ELIBACC;
    }
    memcpy(to, &function, sizeof function);
    to += sizeof function;
  }
  return 0;
}

int hk_library_load(struct hk_library *l, char *why, size_t size)
{
  pthread_mutex_lock(&l->mutex);
  const int status = l->loaded ? 0 : library_load(l, why, size);
  l->loaded = status == 0;
  pthread_mutex_unlock(&l->mutex);
  return status;
}

int hk_library_find(const char *file, char *why, size_t size)
{
  return library_open(file, RTLD_LOCAL, why, size) ? 0 : -ELIBACC;
}
