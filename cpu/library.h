/* Shared libraries that few need: each is loaded when it is first needed, so that a program that does not starts without it, in
 * less time and memory. Its functions are then members of a structure, with the types of the library's own header:
 *
 *   #define CALLS(_) _(g_, time_zone_new_local) _(g_, time_zone_unref)
 *   static struct { CALLS(HK_LIBRARY_CALL) } glib;
 *   static struct hk_library library = HK_LIBRARY("libglib-2.0.so.0", glib, CALLS);
 *   if (hk_library_load(&library, why, sizeof why) == 0)
 *     glib.time_zone_unref(glib.time_zone_new_local());
 *
 * A library stays loaded. */
#ifndef HK_LIBRARY_H
#define HK_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#define HK_LIBRARY_WHY 512 /* bytes that a reason may have */

struct hk_library {
  const char *file;  /* soname */
  const char *names; /* of the functions, each with a 0, then an empty one */
  void *calls;       /* a pointer for each name; they are set once it is loaded */
  bool below;        /* libraries that are loaded after it use its functions */
  bool loaded;       /* under the mutex */
  pthread_mutex_t mutex;
};

#define HK_LIBRARY_CALL(prefix, name) __typeof__(prefix##name) *name;
#define HK_LIBRARY_NAME(prefix, name) #prefix #name "\0"
#define HK_LIBRARY(file, structure, calls)                                                                                       \
  {                                                                                                                              \
    file, calls(HK_LIBRARY_NAME), &(structure), false, false, PTHREAD_MUTEX_INITIALIZER                                          \
  }

/* Loads it, unless it is loaded. Returns 0, or -ELIBACC with the reason, which names the file. Thread: any; the functions are for
 * whom this has returned 0, and for threads that such a one has started. */
int hk_library_load(struct hk_library *library, char *why, size_t size);
/* Whether a library can be loaded: as above, without its functions. */
int hk_library_find(const char *file, char *why, size_t size);

#endif
