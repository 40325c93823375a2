/* A hankeld that is built without libwebsockets: a configuration with protocol = http is refused, so these functions are not
 * called. */
#include "daemon/web/web.h"

#include <errno.h>
#include <stdio.h>

int hk_web_open(struct hk_web **out, struct hk_net *net, const struct hk_web_answers *answers, char *error, size_t size)
{
  (void)out;
  (void)net;
  (void)answers;
  snprintf(error, size, "protocol = http needs a hankeld that is built with libwebsockets");
  return -ENOSYS;
}

int hk_web_start(struct hk_web *web)
{
  (void)web;
  return 0;
}

bool hk_web_stop(struct hk_web *web)
{
  (void)web;
  return true;
}

void hk_web_close(struct hk_web *web)
{
  (void)web;
}

void hk_web_tell(struct hk_web *web, enum hk_web_phase phase)
{
  (void)web;
  (void)phase;
}

void hk_web_again(struct hk_web *web)
{
  (void)web;
}

bool hk_web_take(struct hk_web *web, const struct hk_listener *listener, int fd, struct hk_address_limits_place *place,
                 const char **why)
{
  (void)web;
  (void)listener;
  (void)fd;
  (void)place;
  *why = "this hankeld is built without HTTP";
  return false;
}

const struct hk_counters *hk_web_counters(const struct hk_web *web)
{
  static const struct hk_counters nothing;
  (void)web;
  return &nothing;
}

uint32_t hk_web_connections(const struct hk_web *web)
{
  (void)web;
  return 0;
}

uint32_t hk_web_descriptors(const struct hk_config *config)
{
  (void)config;
  return 0;
}
