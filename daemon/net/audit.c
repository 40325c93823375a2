/* See audit.h. */
#include "daemon/net/audit.h"

#include <stdarg.h>
#include <stdio.h>

void hk_audit_init(struct hk_audit *audit)
{
  hk_log_init(&audit->log, HK_LOG_WARNING);
}

void hk_audit_refused(struct hk_audit *audit, struct hk_log_quota *quota, const char *peer, const char *listener,
                      const char *format, ...)
{
  char why[512];
  va_list arguments;
  if (hk_log_spent(&audit->log, quota, HK_LOG_WARNING))
    return;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  hk_log_peer(&audit->log, quota, HK_LOG_WARNING, peer, "refused at [listen %s]: %s", listener, why);
}
