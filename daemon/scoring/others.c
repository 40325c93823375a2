#include "daemon/scoring/others.h"

#include "daemon/scoring/backend_none.h"
#include "daemon/sensors/slots.h"

#include <errno.h>
#include <stdlib.h>

/* Handles of these sensors have this generation, so that subscribers do not take them for sensors of this machine: a slot of
 * which would have to be reused so often. */
#define GENERATION 0xfd

static const char *others_words(const struct hk_slot_binding *binding)
{
  (void)binding;
  return "";
}

int hk_others_new(struct hk_others **out, const struct hk_config *config)
{
  char error[64];
  struct hk_others *o = calloc(1, sizeof *o);
  *out = o;
  if (!o)
    return -ENOMEM;
  pthread_mutex_init(&o->calls, NULL);
  o->binding.calls = &o->calls;
  o->binding.words = others_words;
  o->detector = config->detectors[0].number;
  int status = hk_backend_kinds_none[HK_BACKEND_CPU].open(&o->binding.backend, NULL, error, sizeof error);
  if (status == 0)
    status = hk_registry_new(&o->registry, config, 1);
  if (status != 0)
    return status;
  hk_registry_generations(o->registry, GENERATION);
  hk_registry_move(o->registry, 0, &o->binding, NULL, NULL);
  return 0;
}

void hk_others_free(struct hk_others *o)
{
  if (!o)
    return;
  hk_registry_free(o->registry);
  if (o->binding.backend)
    o->binding.backend->ops->close(o->binding.backend);
  pthread_mutex_destroy(&o->calls);
  free(o);
}

int hk_others_take(struct hk_others *o, struct hk_string name, uint32_t *slot)
{
  hk_registry_read(o->registry);
  const bool there = hk_registry_find(o->registry, name.data, name.length, slot) == 0;
  hk_registry_read_end(o->registry);
  return there                                   ? 0
         : hk_name_valid(name.data, name.length) ? hk_registry_series(o->registry, 0, name.data, name.length, o->detector, slot)
                                                 : HANKEL_BAD_NAME;
}
