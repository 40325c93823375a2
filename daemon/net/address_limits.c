/* A hash table of chains; its places come from an array. A place without connections and recent failures may be reused for
 * another address. See address_limits.h. */
#include "daemon/net/address_limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define MINUTE 60000000000 /* ns */
#define FAILED 4096u       /* places in addition to those of connections */
#define LOOKED_AT 64u      /* places that are searched for a free one before the oldest of them is reused */
#define NONE UINT32_MAX

struct hk_address_limits_place {
  uint8_t address[16];
  uint32_t connections, newcomers, failures;
  int64_t since; /* ns: time of the first of these failures */
  bool used;
  uint32_t next; /* next place of the chain */
};

struct hk_address_limits {
  pthread_mutex_t lock;
  uint64_t key;
  uint32_t n, hand; /* number of places; where the next search begins */
  uint32_t mask;
  uint32_t newcomers;
  uint32_t *first; /* first place of each chain */
  struct hk_address_limits_place *places;
};

int hk_address_limits_new(struct hk_address_limits **out, uint32_t max_connections)
{
  struct hk_address_limits *l = calloc(1, sizeof *l);
  if (!l)
    return -ENOMEM;
  pthread_mutex_init(&l->lock, NULL);
  l->n = max_connections + FAILED;
  l->mask = 1;
  while (l->mask < l->n)
    l->mask *= 2;
  l->places = calloc(l->n, sizeof *l->places);
  l->first = malloc(l->mask * sizeof *l->first);
  int status = l->places && l->first ? 0 : -ENOMEM;
  if (status == 0 && getrandom(&l->key, sizeof l->key, 0) != (ssize_t)sizeof l->key)
    status = -errno;
  for (uint32_t i = 0; l->first && i < l->mask; i++)
    l->first[i] = NONE;
  l->mask--;
  if (status != 0)
    hk_address_limits_free(l);
  else
    *out = l;
  return status;
}

void hk_address_limits_free(struct hk_address_limits *l)
{
  if (!l)
    return;
  pthread_mutex_destroy(&l->lock);
  free(l->places);
  free(l->first);
  free(l);
}

const char *hk_address_limits_words(enum hk_address_limits_verdict verdict)
{
  static const char *const words[] = {
    [HK_ADDRESS_LIMITS_FINE] = "fine",
    [HK_ADDRESS_LIMITS_CONNECTIONS] = "its address has too many connections (max_connections_per_address)",
    [HK_ADDRESS_LIMITS_NEWCOMERS] = "its address has too many unauthenticated connections (max_newcomers)",
    [HK_ADDRESS_LIMITS_FAILURES] = "its address has failed too often within a minute (max_failures)",
    [HK_ADDRESS_LIMITS_FULL] = "too many addresses at a time",
  };
  return words[verdict];
}

void hk_address_limits_normalise(const struct sockaddr *address, uint8_t out[HK_ADDRESS_LIMITS_ADDRESS])
{
  static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
  if (address->sa_family == AF_INET6) {
    memcpy(out, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    if (memcmp(out, mapped, sizeof mapped) != 0)
      memset(out + 8, 0, 8);
  } else {
    memcpy(out, mapped, sizeof mapped);
    memcpy(out + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
  }
}

static uint32_t *chain(struct hk_address_limits *l, const uint8_t address[16])
{
  return &l->first[XXH3_64bits_withSeed(address, 16, l->key) & l->mask];
}

/* Resets failures that are over a minute old. */
static void address_limits_forget(struct hk_address_limits_place *p, int64_t now)
{
  if (p->failures > 0 && now - p->since > MINUTE)
    p->failures = 0;
}

static void unlink_place(struct hk_address_limits *l, uint32_t index)
{
  uint32_t *link = chain(l, l->places[index].address);
  while (*link != index)
    link = &l->places[*link].next;
  *link = l->places[index].next;
  l->places[index].used = false;
}

/* Finds a place for another address: a free one, or else, among some without connections, the one whose failure is oldest. */
static uint32_t make_place(struct hk_address_limits *l, int64_t now)
{
  uint32_t oldest = NONE;
  for (uint32_t i = 0, looked = 0; i < l->n && looked < LOOKED_AT; i++) {
    const uint32_t at = l->hand;
    struct hk_address_limits_place *p = &l->places[at];
    l->hand = at + 1 < l->n ? at + 1 : 0;
    if (!p->used)
      return at;
    if (p->connections > 0)
      continue;
    address_limits_forget(p, now);
    if (p->failures == 0) {
      unlink_place(l, at);
      return at;
    }
    looked++;
    if (oldest == NONE || p->since < l->places[oldest].since)
      oldest = at;
  }
  if (oldest != NONE)
    unlink_place(l, oldest);
  return oldest;
}

static struct hk_address_limits_place *address_limits_find(struct hk_address_limits *l, const struct sockaddr_storage *from,
                                                           int64_t now)
{
  uint8_t address[16];
  hk_address_limits_normalise((const struct sockaddr *)from, address);
  for (uint32_t i = *chain(l, address); i != NONE; i = l->places[i].next)
    if (memcmp(l->places[i].address, address, sizeof address) == 0) {
      address_limits_forget(&l->places[i], now);
      return &l->places[i];
    }
  const uint32_t made = make_place(l, now);
  if (made == NONE)
    return NULL;
  uint32_t *first = chain(l, address);
  l->places[made] = (struct hk_address_limits_place){ .used = true, .next = *first };
  memcpy(l->places[made].address, address, sizeof address);
  *first = made;
  return &l->places[made];
}

static enum hk_address_limits_verdict address_limits_judge(const struct hk_address_limits_place *p,
                                                           const struct hk_address_limits_most *most, bool newcomer)
{
  if (!p)
    return HK_ADDRESS_LIMITS_FULL;
  if (newcomer && most->failures > 0 && p->failures >= most->failures)
    return HK_ADDRESS_LIMITS_FAILURES;
  if (most->connections > 0 && p->connections >= most->connections)
    return HK_ADDRESS_LIMITS_CONNECTIONS;
  if (newcomer && most->newcomers > 0 && p->newcomers >= most->newcomers)
    return HK_ADDRESS_LIMITS_NEWCOMERS;
  return HK_ADDRESS_LIMITS_FINE;
}

enum hk_address_limits_verdict hk_address_limits_enter(struct hk_address_limits *l, const struct hk_address_limits_most *most,
                                                       const struct sockaddr_storage *address, bool newcomer, int64_t now,
                                                       struct hk_address_limits_place **out)
{
  pthread_mutex_lock(&l->lock);
  struct hk_address_limits_place *p = address_limits_find(l, address, now);
  const enum hk_address_limits_verdict verdict = address_limits_judge(p, most, newcomer);
  if (verdict == HK_ADDRESS_LIMITS_FINE) {
    p->connections++;
    p->newcomers += newcomer;
    l->newcomers += newcomer;
    *out = p;
  }
  pthread_mutex_unlock(&l->lock);
  return verdict;
}

void hk_address_limits_address(const struct hk_address_limits_place *place, uint8_t out[HK_ADDRESS_LIMITS_ADDRESS])
{
  memcpy(out, place->address, HK_ADDRESS_LIMITS_ADDRESS); /* the address does not change while the place has a connection */
}

void hk_address_limits_admit(struct hk_address_limits *l, struct hk_address_limits_place *p)
{
  pthread_mutex_lock(&l->lock);
  p->newcomers--;
  l->newcomers--;
  pthread_mutex_unlock(&l->lock);
}

bool hk_address_limits_fail(struct hk_address_limits *l, const struct hk_address_limits_most *most,
                            struct hk_address_limits_place *p, int64_t now)
{
  pthread_mutex_lock(&l->lock);
  address_limits_forget(p, now);
  if (p->failures++ == 0)
    p->since = now;
  const bool last = p->failures == most->failures;
  pthread_mutex_unlock(&l->lock);
  return last;
}

void hk_address_limits_leave(struct hk_address_limits *l, struct hk_address_limits_place *p, bool newcomer)
{
  if (!p)
    return;
  pthread_mutex_lock(&l->lock);
  p->connections--;
  p->newcomers -= newcomer;
  l->newcomers -= newcomer;
  pthread_mutex_unlock(&l->lock);
}

void hk_address_limits_survey(struct hk_address_limits *l, const struct hk_address_limits_most *most, int64_t now,
                              uint32_t *newcomers, uint32_t *turned_away)
{
  *turned_away = 0;
  pthread_mutex_lock(&l->lock);
  *newcomers = l->newcomers;
  for (uint32_t i = 0; i < l->n; i++) {
    const struct hk_address_limits_place *p = &l->places[i];
    *turned_away += p->used && most->failures > 0 && p->failures >= most->failures && now - p->since <= MINUTE;
  }
  pthread_mutex_unlock(&l->lock);
}
