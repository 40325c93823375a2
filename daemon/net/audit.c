/* See audit.h. */
#include "daemon/net/audit.h"
#include "daemon/config/listener_rules.h"

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

void hk_audit_forbidden(struct hk_audit *audit, struct hk_log_quota *quota, const char *peer, const char *listener,
                        const struct hk_audit_lack *lack, char answer[HK_AUDIT_LACK_TEXT])
{
  char need[HK_SCOPES_NEED_TEXT], has[HK_SCOPES_TEXT];
  hk_scopes_format_need(lack->need, need);
  hk_scopes_format(lack->has, has);
  hk_audit_refused(audit, quota, peer, listener, "%s needs %s; %s has %s", lack->what, need,
                   lack->name[0] ? lack->name : "a peer without a name", has);
  snprintf(answer, HK_AUDIT_LACK_TEXT, "this needs %s; the token or certificate has %s", need, has);
}
