/* Progress of the data, for incidents: how far the data of this machine's shards are, in time of the data (ns). The events of
 * before are logged by then.
 *
 * Ticks wait for the data of all shards. Ends of incidents do not wait for shards that have had no points for a while, or
 * only late or rejected ones: else those of one device would stay open while the only sensor of another is silent, or its clock
 * was set back.
 *
 * Thread: any. server: a struct hk_server. */
#ifndef HK_PROGRESS_H
#define HK_PROGRESS_H

#include <stdint.h>

/* The least of the shards in a bit set; 0: unknown for one of them, or the set is empty. */
int64_t hk_progress_ticks(void *server, uint64_t shards);
/* The least of those that have had points that count in the last `silence` (ns); 0: unknown for one of them; INT64_MAX: there are
 * none. */
int64_t hk_progress_ends(void *server, int64_t silence);

#endif
