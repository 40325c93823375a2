/* The configuration from arbitrary bytes: it is read, or refused with errors. */
#include "daemon/config/config.h"
#include "daemon/config/config_reader.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count(void *arg, const char *message)
{
  unsigned *faults = arg;
  *faults += strlen(message) > 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct hk_config config;
  unsigned faults = 0;
  if (size == 0)
    return 0;
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
  if (!file)
    return 0;
  const int status = hk_config_read(&config, file, "fuzz", count, &faults);
  fclose(file);
  /* Refused if and only if an error was reported. */
  if ((status == 0) != (faults == 0) || (status == 0 && (config.n_detectors == 0 || config.n_listeners == 0)))
    abort();
  hk_config_free(&config);
  hk_config_free(&config);
  return 0;
}
