/* Audit: a line for each peer that was refused, at level warning whatever `log_level` says:
 *
 *     PEER: refused at [listen NAME]: WHY
 *
 * Lines are few for each peer and all of them together, as hk_log_peer has it, but counted apart from what peers cause else: who
 * floods the log with bad lines does not hide an attack, nor the other way round. A token is never written. Thread: any. */
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
