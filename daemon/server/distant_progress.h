/* Distant progress: how far the data of the other machines of a cluster are (progress.h), which this one asks them for by letters
 * (bridge/cluster_mail.h), so that incidents end by the data of all.
 *
 *     hk_distant_ask -> every machine with partitions answers once the shared log has its events -> hk_distant_reached
 *
 * So if the log is marked then, and read up to the mark, it was read with all their events of before. Machines that are away have
 * no data, nor has one of an earlier build, which does not know the question. Until notices of all have had the time to come
 * there is no question.
 *
 * Thread: one. */
#ifndef HK_DISTANT_PROGRESS_H
#define HK_DISTANT_PROGRESS_H

#include "daemon/bridge/cluster_mail.h"

struct hk_distant_progress;

/* ready(arg): there may be an answer. Thread: any, until the mail is stopped, also behind hk_distant_progress_free. NULL: no
 * memory. */
struct hk_distant_progress *hk_distant_progress_new(void (*ready)(void *arg), void *arg);
void hk_distant_progress_free(struct hk_distant_progress *progress); /* NULL is allowed */

/* Asks all machines at most every 2 s; to call often, also with wanted = false: it asks nothing then. silence: as of
 * hk_progress_ends. mail: NULL: there are no others that can be asked. */
void hk_distant_ask(struct hk_distant_progress *progress, struct hk_cluster *mail, int64_t silence, bool wanted);
/* Whether all have answered since the last time that it was so. *reached: the least, ns, time of the data; INT64_MAX: there is
 * none. */
bool hk_distant_reached(struct hk_distant_progress *progress, int64_t *reached);
/* Drops what was asked, and for how long notices have come: it may be called again much later. */
void hk_distant_progress_forget(struct hk_distant_progress *progress);

#endif
