/* Keys of the section [daemon]: their types, defaults and limits, and which of them a running daemon adopts. hankeld.conf(5)
 * documents each of them. */
#ifndef HK_DAEMON_KEYS_H
#define HK_DAEMON_KEYS_H

#include "daemon/config/config.h"

#include <stdbool.h>

#define HK_KEY_TEXT 96 /* bytes of a value in a report, with the 0 */

/* Sets all keys to their defaults. */
void hk_keys_default(struct hk_config *config);
/* Sets a key. Returns 0, or -EINVAL with a message: no such key, or an invalid value. */
int hk_key_set(struct hk_config *config, const char *name, const char *value, char *error, size_t size);

/* A key whose value has changed. */
struct hk_key_change {
  const char *name;
  bool live; /* a running daemon adopts it; else it needs a restart */
  char before[HK_KEY_TEXT], after[HK_KEY_TEXT];
};
/* Reports every key whose value differs, in the order of the manual; resets keys that need a restart to their values in `before`.
 * */
void hk_keys_compare(const struct hk_config *before, struct hk_config *after,
                     void (*differs)(void *arg, const struct hk_key_change *change), void *arg);

#endif
