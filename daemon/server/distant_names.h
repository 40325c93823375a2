/* Distant names: the names of the sensors that other machines of a cluster score, which this one asks them for by letters
 * (bridge/cluster_mail.h), so that incidents count the sensors of all machines.
 *
 *     hk_distant_tell    answers such a question: some slots of the registry
 *     hk_distant_turn    asks, and takes answers: a machine's new slots every 2 s; all of them anew, since slots are used again,
 *                        a minute after others came
 *
 * Thread: one at a time; hk_distant_tell: any. */
#ifndef HK_DISTANT_NAMES_H
#define HK_DISTANT_NAMES_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/cluster_mail.h"
#include "daemon/config/incidents_rule.h"
#include "daemon/sensors/registry.h"

struct hk_distant_names;

struct hk_distant_hooks {
  /* Takes a sensor's name, which may be known, and is valid until it returns. Returns the number of the section of incidents,
   * below HK_INCIDENTS_MOST, that the sensor belongs to; -1: none. */
  int (*learn)(void *arg, struct hk_string name);
  void (*ready)(void *arg); /* there may be an answer. Thread: any, until the mail is stopped, also behind hk_distant_free */
  void *arg;
};

/* Appends the names in some slots of the registry, from `from` on, as JSON; series that the daemon derives are left out. */
void hk_distant_tell(struct hk_registry *registry, uint32_t from, struct hk_buffer *out);

struct hk_distant_names *hk_distant_new(const struct hk_distant_hooks *hooks); /* NULL: no memory */
void hk_distant_free(struct hk_distant_names *names);                          /* NULL is allowed */
/* Asks all machines again for all of their names. */
void hk_distant_again(struct hk_distant_names *names);
/* Returns whether there were names. mail: NULL is allowed. */
bool hk_distant_turn(struct hk_distant_names *names, struct hk_cluster *mail);
/* The number of sensors that the other machines score and that belong to a section of incidents, as far as they have told. */
uint32_t hk_distant_count(const struct hk_distant_names *names, uint32_t section);

#endif
