/* The keys of [daemon] are a table. */
#include "daemon/config/daemon_keys.h"

#include "cpu/duration.h"
#include "cpu/suggest.h"
#include "daemon/base/log.h"
#include "daemon/config/section_keys.h"
#include "proto/line/line.h"
#include "proto/wire/frame.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SECOND 1000000000ll

static const char *const backends[] = { "auto", "cpu", "cuda", "reference", NULL };
static const char *const device_failures[] = { "auto", "cpu", "stop", NULL };
static const char *const levels[] = { "", "", "", "error", "warning", "notice", "info", "debug", NULL };

enum kind { WORD, NUMBER, BYTES, DURATION, PATH };
enum when { START, LIVE }; /* read at the start only; a running daemon adopts it */

/* WORD and NUMBER are uint32_t, BYTES uint64_t, DURATION int64_t, PATH char[HK_CONFIG_PATH_MAX]. */
static const struct key {
  const char *name;
  enum kind kind;
  enum when when;
  size_t offset;
  uint64_t standard;
  uint64_t min, max;        /* of numbers and bytes; min of durations, except off */
  const char *const *words; /* of words */
  bool off;                 /* "off" is 0 */
} keys[] = {
#define AT(field) offsetof(struct hk_config, field)
  { "backend", WORD, START, AT(backend), HK_BACKEND_AUTO, 0, 0, backends, false },
  { "on_device_failure", WORD, LIVE, AT(on_device_failure), HK_DEVICE_FAILURE_AUTO, 0, 0, device_failures, false },
  { "device_timeout", DURATION, LIVE, AT(device_timeout), 10 * SECOND, SECOND, 0, NULL, true },
  { "log_level", WORD, LIVE, AT(log_level), HK_LOG_INFO, 0, 0, levels, false },
  { "threads", NUMBER, START, AT(threads), 0, 0, 1024, NULL, false },
  { "loops", NUMBER, START, AT(loops), 0, 0, 64, NULL, false },
  { "devices", NUMBER, START, AT(devices), 0, 0, 64, NULL, false },
  { "busy_poll", DURATION, LIVE, AT(busy_poll), 0, 0, 0, NULL, true },
  { "max_sensors", NUMBER, START, AT(max_sensors), 1000000, 1, 0xffffff, NULL, false },
  { "max_sensors_per_peer", NUMBER, LIVE, AT(max_sensors_per_peer), 0, 1, 0xffffff, NULL, true },
  { "max_connections", NUMBER, START, AT(max_connections), 1024, 1, 65535, NULL, false },
  { "max_connections_per_address", NUMBER, LIVE, AT(max_connections_per_address), 0, 1, 65535, NULL, false },
  { "max_newcomers", NUMBER, LIVE, AT(max_newcomers), 128, 1, 65535, NULL, true },
  { "max_failures", NUMBER, LIVE, AT(max_failures), 20, 1, 65535, NULL, true },
  { "max_subscriptions", NUMBER, LIVE, AT(max_subscriptions), 1024, 1, 65535, NULL, false },
  { "max_feeds_per_peer", NUMBER, LIVE, AT(max_feeds_per_peer), 8192, 1, 65535, NULL, true },
  { "feed_expiry", DURATION, LIVE, AT(feed_expiry), 30 * 24 * 3600 * SECOND, SECOND, 0, NULL, true },
  { "max_pending", NUMBER, LIVE, AT(max_pending), 65536, 1024, 1 << 28, NULL, false },
  { "backlog", NUMBER, START, AT(backlog), 1 << 20, 1024, 1 << 28, NULL, false },
  { "memory", BYTES, LIVE, AT(memory), 2ull << 30, 0, UINT64_MAX, NULL, true },
  { "max_frame", BYTES, START, AT(max_frame), HK_FRAME_MAX, HK_FRAME_MAX_LEAST, HK_FRAME_MAX_MOST, NULL, false },
  { "max_line", BYTES, LIVE, AT(max_line), HK_LINE_MAX, HK_LINE_MAX_LEAST, HK_LINE_MAX_MOST, NULL, false },
  { "queue", BYTES, LIVE, AT(queue), 4 << 20, 64 << 10, 1ull << 40, NULL, false },
  { "max_ahead", DURATION, LIVE, AT(max_ahead), 3600 * SECOND, 0, 0, NULL, true },
  { "evict", DURATION, LIVE, AT(evict), 0, 0, 0, NULL, true },
  { "handshake", DURATION, LIVE, AT(handshake), 10 * SECOND, 0, 0, NULL, false },
  { "idle", DURATION, LIVE, AT(idle), 0, 0, 0, NULL, true },
  { "stuck", DURATION, LIVE, AT(stuck), 60 * SECOND, 0, 0, NULL, true },
  { "keepalive", DURATION, LIVE, AT(keepalive), 60 * SECOND, SECOND, 0, NULL, true },
  { "drain", DURATION, LIVE, AT(drain), 10 * SECOND, 0, 0, NULL, false },
  { "durability", WORD, START, AT(durability), HK_DURABILITY_NONE, 0, 0, hk_durability_words, false },
  { "state", PATH, START, AT(state), 0, 0, 0, NULL, false },
  { "snapshot", DURATION, LIVE, AT(snapshot), 60 * SECOND, SECOND, 0, NULL, false },
  { "journal_wait", DURATION, LIVE, AT(journal_wait), 10 * SECOND, SECOND / 10, 0, NULL, false },
  { "journal_segment", BYTES, START, AT(journal_segment), 64 << 20, 1 << 20, 1ull << 40, NULL, false },
  { "flap_limit", NUMBER, LIVE, AT(flaps.limit), 0, 1, HK_FLAP_MAX, NULL, true },
  { "flap_within", DURATION, LIVE, AT(flaps.within), 3600 * SECOND, SECOND, 0, NULL, false },
  { "stale_alerts", DURATION, LIVE, AT(stale_alerts), 3600 * SECOND, SECOND, 0, NULL, true },
  { "event_log", BYTES, START, AT(event_log), 64 << 20, 1 << 20, 1ull << 40, NULL, false },
  { "scores", BYTES, START, AT(scores), 32 << 20, 4 << 20, 1ull << 40, NULL, true },
#undef AT
};

/* A whole number, for bytes followed by KiB, MiB, GiB or TiB. */
static int number_parse(const char *text, bool bytes, uint64_t *out)
{
  if (!isdigit((unsigned char)text[0]))
    return -EINVAL;
  char *end;
  errno = 0;
  const unsigned long long number = strtoull(text, &end, 10);
  if (errno != 0)
    return -EINVAL;
  unsigned shift = 0;
  if (bytes && *end) {
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", NULL };
    uint32_t unit;
    while (*end == ' ')
      end++;
    if (hk_word_find(units, end, &unit) != 0)
      return -EINVAL;
    shift = 10 * (unit + 1);
    end += 3;
  }
  if (*end || number > UINT64_MAX >> shift)
    return -EINVAL;
  *out = (uint64_t)number << shift;
  return 0;
}

static void words_list(const char *const *words, char *out, size_t size)
{
  size_t at = 0;
  out[0] = 0;
  for (; *words; words++)
    if (**words && at < size)
      at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", *words);
}

static bool wide(const struct key *key)
{
  return key->kind == BYTES || key->kind == DURATION;
}

/* The machine is little-endian. */
static void daemon_keys_put(struct hk_config *config, const struct key *key, uint64_t value)
{
  memcpy((char *)config + key->offset, &value, wide(key) ? sizeof value : sizeof(uint32_t));
}

static uint64_t daemon_keys_get(const struct hk_config *config, const struct key *key)
{
  uint64_t value = 0;
  memcpy(&value, (const char *)config + key->offset, wide(key) ? sizeof value : sizeof(uint32_t));
  return value;
}

void hk_keys_default(struct hk_config *config)
{
  for (size_t i = 0; i < COUNT(keys); i++)
    if (keys[i].kind != PATH) /* "" */
      daemon_keys_put(config, &keys[i], keys[i].standard);
}

int hk_key_set(struct hk_config *config, const char *name, const char *value, char *error, size_t size)
{
  const struct key *key = NULL;
  for (size_t i = 0; i < COUNT(keys) && !key; i++)
    if (strcmp(keys[i].name, name) == 0)
      key = &keys[i];
  if (!key)
    return hk_section_no_key("daemon", name, &keys[0].name, COUNT(keys), sizeof *keys, error, size);
  if (key->off && strcmp(value, "off") == 0) {
    daemon_keys_put(config, key, 0);
    return 0;
  }
  if (key->kind == PATH) {
    const size_t length = strlen(value);
    if (length == 0 || length >= HK_CONFIG_PATH_MAX) {
      snprintf(error, size, "%s: a path of 1 to %d bytes is needed", name, HK_CONFIG_PATH_MAX - 1);
      return -EINVAL;
    }
    memcpy((char *)config + key->offset, value, length + 1);
    return 0;
  }
  uint64_t number = 0;
  if (key->kind == WORD) {
    uint32_t word;
    if (hk_word_find(key->words, value, &word) != 0) {
      char allowed[128];
      words_list(key->words, allowed, sizeof allowed);
      snprintf(error, size, "%s = %.64s: not one of %s", name, value, allowed);
      hk_suggest_of(value, allowed, error, size);
      return -EINVAL;
    }
    number = word;
  } else if (key->kind == DURATION) {
    int64_t duration;
    if (hk_duration_parse(value, &duration) != 0) {
      snprintf(error, size, "%s = %.64s: not a duration such as 250ms, 30s, 5m or 1h%s", name, value,
               key->off ? ", nor off" : "");
      return -EINVAL;
    }
    if (duration < (int64_t)key->min) {
      snprintf(error, size, "%s = %.64s: at least %g s%s", name, value, (double)key->min * 1e-9, key->off ? ", or off" : "");
      return -EINVAL;
    }
    number = (uint64_t)duration;
  } else if (number_parse(value, key->kind == BYTES, &number) != 0 || number < key->min || number > key->max) {
    snprintf(error, size, "%s = %.64s: not a whole number%s from %" PRIu64 " to %" PRIu64 "%s", name, value,
             key->kind == BYTES ? " of bytes (KiB, MiB, GiB, TiB may follow)" : "", key->min, key->max,
             key->off ? ", nor off" : "");
    return -EINVAL;
  }
  daemon_keys_put(config, key, number);
  return 0;
}

/* Formats a value as in the file, in the largest unit that divides it. */
static void daemon_keys_print(const struct key *key, uint64_t value, char out[HK_KEY_TEXT])
{
  static const struct unit {
    uint64_t size;
    const char *name;
  } times[] = { { 3600 * SECOND, "h" }, { 60 * SECOND, "m" }, { SECOND, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" } },
    bytes[] = { { 1ull << 40, "TiB" }, { 1ull << 30, "GiB" }, { 1ull << 20, "MiB" }, { 1ull << 10, "KiB" }, { 1, "" } };
  const struct unit *unit = key->kind == DURATION ? times : bytes;
  if (key->kind == WORD) {
    snprintf(out, HK_KEY_TEXT, "%s", key->words[value]);
  } else if (key->off && value == 0) {
    snprintf(out, HK_KEY_TEXT, "off");
  } else if (key->kind == NUMBER || value == 0) {
    snprintf(out, HK_KEY_TEXT, "%" PRIu64 "%s", value, key->kind == DURATION ? "s" : "");
  } else {
    while (value % unit->size != 0)
      unit++;
    snprintf(out, HK_KEY_TEXT, "%" PRIu64 "%s", value / unit->size, unit->name);
  }
}

/* As much of a path as fits. */
static void path_text(const char *path, char out[HK_KEY_TEXT])
{
  const size_t n = strnlen(path, HK_KEY_TEXT - 1);
  memcpy(out, path, n);
  out[n] = '\0';
}

/* No path is live. */
static void compare_paths(const struct hk_config *before, struct hk_config *after, const struct key *key,
                          void (*differs)(void *arg, const struct hk_key_change *change), void *arg)
{
  const char *old = (const char *)before + key->offset;
  char *new = (char *)after + key->offset;
  struct hk_key_change change = { .name = key->name };
  if (strcmp(old, new) == 0)
    return;
  path_text(old, change.before);
  path_text(new, change.after);
  differs(arg, &change);
  memcpy(new, old, HK_CONFIG_PATH_MAX);
}

void hk_keys_compare(const struct hk_config *before, struct hk_config *after,
                     void (*differs)(void *arg, const struct hk_key_change *change), void *arg)
{
  for (size_t i = 0; i < COUNT(keys); i++) {
    const struct key *key = &keys[i];
    if (key->kind == PATH) {
      compare_paths(before, after, key, differs, arg);
      continue;
    }
    const uint64_t old = daemon_keys_get(before, key), new = daemon_keys_get(after, key);
    if (old == new)
      continue;
    struct hk_key_change change = { .name = key->name, .live = key->when == LIVE };
    daemon_keys_print(key, old, change.before);
    daemon_keys_print(key, new, change.after);
    differs(arg, &change);
    if (!change.live)
      daemon_keys_put(after, key, old);
  }
}
