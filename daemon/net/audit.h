/* Audit: a line for each peer that was refused, at level warning whatever `log_level` says:
 *
 *     PEER: refused at [listen NAME]: WHY
 *
 * Lines are limited for each peer and in all, as in hk_log_peer, but with quotas of their own: a flood of bad lines does not hide
 * an attack, nor the other way round. A token is never logged. Thread: any. */
#ifndef HK_AUDIT_H
#define HK_AUDIT_H

#include "daemon/base/log.h"

#include <stdint.h>

struct hk_audit {
  struct hk_log log; /* quotas of its own */
};

void hk_audit_init(struct hk_audit *audit);
/* quota: the peer's own, for the audit. */
void hk_audit_refused(struct hk_audit *audit, struct hk_log_quota *quota, const char *peer, const char *listener,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A request for which its peer lacks the scope. */
struct hk_audit_lack {
  const char *what;   /* was requested, for the log */
  const char *name;   /* of the peer's token or certificate; "": it has none */
  uint32_t need, has; /* scopes (HK_SCOPE_...): one of these is needed; those of the peer */
};
#define HK_AUDIT_LACK_TEXT 128

/* Logs it as refused, and writes the answer to the peer. */
void hk_audit_forbidden(struct hk_audit *audit, struct hk_log_quota *quota, const char *peer, const char *listener,
                        const struct hk_audit_lack *lack, char answer[HK_AUDIT_LACK_TEXT]);

#endif
