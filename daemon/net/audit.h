/* Audit: a line for each peer that was refused, at level warning whatever `log_level` says:
 *
 *     PEER: refused at [listen NAME]: WHY
 *
 * Lines are limited for each peer and in all, as in hk_log_peer, but with quotas of their own: a flood of bad lines does not hide
 * an attack, nor the other way round. A token is never logged. Thread: any. */
#ifndef HK_AUDIT_H
#define HK_AUDIT_H

#include "daemon/base/log.h"

struct hk_audit {
  struct hk_log log; /* quotas of its own */
};

void hk_audit_init(struct hk_audit *audit);
/* quota: the peer's own, for the audit. */
void hk_audit_refused(struct hk_audit *audit, struct hk_log_quota *quota, const char *peer, const char *listener,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
