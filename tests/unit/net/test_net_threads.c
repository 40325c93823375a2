/* What loops share with each other and with the main thread: credentials in force, limits by address, peer feeds. */
#include "daemon/net/address_limits.h"
#include "daemon/net/credentials.h"
#include "daemon/net/udp_feeds.h"
#include "tests/unit/support/together.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 400 };

/* --- credentials: a loop uses them while a reload puts others in force
 * ---------------------------------------------------------- */

static void loop_uses(void *arg, uint32_t round)
{
  struct hk_gates *gates = arg;
  (void)round;
  struct hk_credentials *c = hk_gate_credentials(&gates->gate[0]);
  (void)c->tokens;
  hk_credentials_release(c);
}

static void main_reloads(void *arg, uint32_t round)
{
  struct hk_gates *gates = arg;
  struct hk_credentials **fresh;
  char error[256];
  static struct hk_log log;
  if (round == 0)
    hk_log_init(&log, HK_LOG_ERROR);
  if (hk_gates_read(gates, &fresh, error, sizeof error) == 0)
    hk_gates_adopt(gates, fresh, &log);
}

static void credentials_change(void **state)
{
  static struct hk_config_listener listener = { .name = "one" };
  const struct hk_config config = { .listeners = &listener, .n_listeners = 1 };
  struct hk_gates gates = { 0 };
  char path[] = "/dev/shm/hankel-tokens-XXXXXX", token[HK_TOKEN_LENGTH + 1], line[256], error[256];
  const int file = mkstemp(path);
  (void)state;
  assert_true(file >= 0);
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, NULL, token, line, sizeof line), 0);
  assert_true(dprintf(file, "%s\n", line) > 0);
  close(file);
  snprintf(listener.rules.tokens, sizeof listener.rules.tokens, "%s", path);
  if (hk_gates_open(&gates, &config, NULL, error, sizeof error) != 0)
    fail_msg("%s", error);
  together(&gates, ROUNDS, 2, (together_step *const[]){ loop_uses, main_reloads });
  hk_gates_close(&gates);
  unlink(path);
}

/* --- limits by address
 * ------------------------------------------------------------------------------------------------------------- */

static void loop_counts(void *limits, uint32_t round)
{
  static const struct hk_address_limits_most most = { .connections = 3, .newcomers = 2, .failures = 5 };
  struct sockaddr_storage address = { .ss_family = AF_INET };
  struct hk_address_limits_place *place;
  uint32_t newcomers, away;
  ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(0x0a000000u + round % 4);
  if (hk_address_limits_enter(limits, &most, &address, true, round, &place) != HK_ADDRESS_LIMITS_FINE) {
    hk_address_limits_survey(limits, &most, round, &newcomers, &away);
    return;
  }
  const bool admitted = round % 2;
  if (admitted)
    hk_address_limits_admit(limits, place);
  else
    (void)hk_address_limits_fail(limits, &most, place, round);
  hk_address_limits_leave(limits, place, !admitted);
  if (round % 4 == 3)
    hk_address_limits_survey(limits, &most, round, &newcomers, &away);
}

static void addresses_are_counted(void **state)
{
  struct hk_address_limits *limits;
  (void)state;
  assert_int_equal(hk_address_limits_new(&limits, 16), 0);
  together(limits, 4 * ROUNDS, 3, (together_step *const[]){ loop_counts, loop_counts, loop_counts });
  hk_address_limits_free(limits);
}

/* --- peer feeds: datagrams arrive on another loop than the connection's
 * ------------------------------------------------------------- */

struct feeds {
  struct hk_peer_feeds all;
  struct hk_source *source;
  _Atomic uint64_t number; /* of the feed that is open; relaxed: it orders nothing */
};

static void connection_opens(void *arg, uint32_t round)
{
  struct feeds *f = arg;
  struct hk_counters counters = { 0 };
  uint8_t key[HK_MAC_KEY];
  struct hk_peer_feed *p = hk_peer_feeds_take(&f->all);
  if (!p)
    return;
  atomic_store_explicit(&f->number, hk_peer_feed_open(p, f->source), memory_order_relaxed);
  if (round % 2)
    (void)hk_peer_feed_key(p, key);
  (void)hk_peer_feed_fed(p);
  hk_peer_feed_end(p, 1, 1);
  hk_peer_feed_shut(p);
  hk_peer_feeds_give(&f->all, p, &counters);
}

static void datagram_comes(void *arg, uint32_t round)
{
  struct feeds *f = arg;
  (void)round;
  struct hk_peer_feed *p = hk_peer_feed_enter(&f->all, atomic_load_explicit(&f->number, memory_order_relaxed));
  if (!p)
    return;
  p->feed.taken_points++;
  hk_peer_feed_leave(p);
}

static void status_sums(void *arg, uint32_t round)
{
  struct feeds *f = arg;
  struct hk_counters sum = { 0 };
  if (round % 2)
    hk_peer_feeds_sum(&f->all, &sum);
  else
    (void)hk_peer_feeds_taken(&f->all);
}

static void datagrams_find_their_feed(void **state)
{
  struct feeds f = { .source = (struct hk_source *)&f };
  (void)state;
  assert_int_equal(hk_peer_feeds_open(&f.all, 4), 0);
  together(&f, 4 * ROUNDS, 4, (together_step *const[]){ connection_opens, connection_opens, datagram_comes, status_sums });
  hk_peer_feeds_close(&f.all);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(credentials_change),
    cmocka_unit_test(addresses_are_counted),
    cmocka_unit_test(datagrams_find_their_feed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
