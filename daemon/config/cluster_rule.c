#include "daemon/config/cluster_rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND 1000000000ll
#define HOUR (3600 * SECOND)

void hk_cluster_rule_begin(struct hk_cluster_rule *r)
{
  r->partitions = 64;
  r->retention = 7 * 24 * HOUR;
  memcpy(r->vhost, "/", 2);
  memcpy(r->name, "hankeld", 8);
}

/* Parses a number up to `most`; *end: after it. False: there is none. */
static bool cluster_rule_take_number(const char *text, char **end, uint32_t most, uint32_t *out)
{
  if (!isdigit((unsigned char)text[0]))
    return false;
  const unsigned long number = strtoul(text, end, 10);
  *out = (uint32_t)number;
  return number <= most;
}

/* Numbers and ranges separated by commas: 0-15, 40. */
static const char *cluster_rule_take_read(void *field, const char *value)
{
  struct hk_cluster_read *r = field;
  static const char why[] = "partitions are numbers and ranges with commas, such as 0-31, 40";
  memset(r, 0, sizeof *r);
  r->some = strcmp(value, "all") != 0;
  for (const char *at = value; r->some;) {
    uint32_t first, last;
    char *end;
    if (!cluster_rule_take_number(at, &end, HK_PARTITIONS_MAX - 1, &first))
      return why;
    last = first;
    if (*end == '-' && !cluster_rule_take_number(end + 1, &end, HK_PARTITIONS_MAX - 1, &last))
      return why;
    for (uint32_t i = first; i <= last; i++)
      r->bits[i / 8] |= (uint8_t)(1u << i % 8);
    end += strspn(end, " ");
    if (last < first || (*end && *end != ','))
      return why;
    if (*end == 0)
      break;
    at = end + 1 + strspn(end + 1, " ");
  }
  return NULL;
}

static const char *take_state(void *field, const char *value)
{
  static const char shared[] = "shared:";
  if (strncmp(value, shared, sizeof shared - 1) != 0 || value[sizeof shared - 1] != '/')
    return "not shared:DIR, with the whole path of a folder that all scorers see";
  if (strlen(value) >= HK_SECTION_TEXT)
    return "too long";
  snprintf(field, HK_SECTION_TEXT, "%s", value + sizeof shared - 1);
  return NULL;
}

static const char *const roles[] = { "", "gateway", "scorer", "all", NULL };            /* enum hk_cluster_role */
static const char *const engines[] = { "rabbitmq", "kafka", NULL };                     /* enum hk_cluster_engine */
static const char *const sasls[] = { "plain", "scram-sha-256", "scram-sha-512", NULL }; /* enum hk_cluster_sasl */

#define TAKES(what, field) HK_TAKES(what, struct hk_cluster_rule, field)
static const struct hk_section_key keys[] = {
  { "role", TAKES(WORD, role), .words = roles, .wrong = "not all, gateway or scorer" },
  { "engine", TAKES(WORD, engine), .words = engines, .wrong = "not rabbitmq or kafka" },
  { "url", TAKES(TEXT, url) },
  { "vhost", TAKES(TEXT, vhost) },
  { "user", TAKES(TEXT, user) },
  { "password_file", TAKES(TEXT, password) },
  { "sasl", TAKES(WORD, sasl), .words = sasls, .wrong = "not plain, scram-sha-256 or scram-sha-512" },
  { "session", TAKES(DURATION, session), .min = SECOND, .max = 1800.0 * SECOND, .wrong = "not a duration from 1s to 30min" },
  { "ca", TAKES(TEXT, ca) },
  { "certificate", TAKES(TEXT, certificate) },
  { "key", TAKES(TEXT, key) },
  { "insecure", TAKES(FLAG, insecure), .words = hk_yes_words, .wrong = "not yes or no" },
  { "name", TAKES(TEXT, name) },
  { "partitions", TAKES(WHOLE, partitions), .min = 1, .max = HK_PARTITIONS_MAX, .wrong = "not a number from 1 to 1024" },
  { "retention", TAKES(DURATION, retention), .min = HOUR, .max = 10000.0 * 24 * HOUR,
    .wrong = "not a duration from 1h to 10000d" },
  { "read", TAKES(OTHER, read), .take = cluster_rule_take_read },
  { "address", TAKES(TEXT, address) },
  { "state", TAKES(OTHER, state), .take = take_state },
};

int hk_cluster_rule_key(struct hk_cluster_rule *r, const char *name, const char *value, char *error, size_t size)
{
  return hk_section_key_set("cluster", keys, sizeof keys / sizeof *keys, r, name, value, error, size);
}

static const char *take_urls(struct hk_cluster_rule *r)
{
  const bool kafka = r->engine == HK_CLUSTER_KAFKA;
  memset(r->broker, 0, sizeof r->broker);
  r->n_brokers = 0;
  for (const char *at = r->url + strspn(r->url, ", "); *at;) {
    const size_t length = strcspn(at, ", ");
    if (r->n_brokers == HK_CLUSTER_URLS)
      return "url: at most 8 brokers can be named";
    char one[HK_SECTION_TEXT + 16];
    const bool bare = kafka && r->n_brokers > 0 && !memmem(at, length, "://", 3); /* as lists of Kafka's brokers are written */
    snprintf(one, sizeof one, "%s%.*s", !bare ? "" : r->broker[0].tls ? "kafkas://" : "kafka://", (int)length, at);
    if (strlen(one) >= HK_SECTION_TEXT ||
        !hk_broker_address_parse(kafka ? &hk_scheme_kafka : &hk_scheme_amqp, one, &r->broker[r->n_brokers++]))
      break;
    if (r->broker[r->n_brokers - 1].tls != r->broker[0].tls)
      return kafka ? "url: kafka:// and kafkas:// do not go together" : "url: amqp:// and amqps:// do not go together";
    at += length + strspn(at + length, ", ");
    if (!*at)
      return NULL;
  }
  return kafka
             ? "needs url = kafka://HOST, kafkas://HOST for TLS, or with a port, kafka://HOST:9092; several with commas, of one "
               "cluster"
             : "needs url = amqp://HOST, amqps://HOST for TLS, or with a port, amqp://HOST:5672; several with commas are tried "
               "in "
               "turn";
}

static bool all_near(const struct hk_cluster_rule *r)
{
  bool near = true;
  for (uint32_t i = 0; i < r->n_brokers; i++)
    near &= hk_broker_address_is_here(&r->broker[i]);
  return near;
}

static const char *look_at_partitions(const struct hk_cluster_rule *r)
{
  bool any = !r->read.some;
  if (r->role == HK_CLUSTER_GATEWAY && (r->read.some || r->state[0]))
    return "read and state are for machines that score: role = all or role = scorer";
  if (r->role == HK_CLUSTER_ALL && !r->state[0])
    return "role = all needs state = shared:DIR, a folder that all machines see: partitions move between them";
  if (r->read.some && r->state[0])
    return "read and state do not go together: with state the broker decides who reads which partition";
  for (uint32_t i = 0; r->read.some && i < HK_PARTITIONS_MAX; i++) {
    if (!(r->read.bits[i / 8] >> i % 8 & 1))
      continue;
    if (i >= r->partitions)
      return "read names a partition that does not exist: partitions are counted from 0 to `partitions` - 1";
    any = true;
  }
  return any ? NULL : "read names no partition";
}

/* HOST:PORT, of printable characters. */
static bool address_valid(const char *text)
{
  const char *colon = strrchr(text, ':');
  for (const char *at = text; *at; at++)
    if (*at <= ' ' || *at > '~' || *at == '"' || *at == '\\')
      return false;
  return colon && colon > text && strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) > 0 &&
         atoi(colon + 1) < 65536 && strlen(text) <= 255;
}

static const char *look_at_name(const struct hk_cluster_rule *r)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (strlen(r->name) > 100 || strncmp(r->name, "amq.", 4) == 0)
    return "name has at most 100 bytes, and does not begin with `amq.`, which is the broker's";
  if (r->engine == HK_CLUSTER_KAFKA && r->name[strspn(r->name, letters)])
    return "name is the beginning of the names of Kafka's topics: it has letters, digits, dots, _ and - only";
  return NULL;
}

/* Sets what one engine alone has. */
static const char *look_at_engine(struct hk_cluster_rule *r)
{
  const bool kafka = r->engine == HK_CLUSTER_KAFKA;
  if (kafka && strcmp(r->vhost, "/") != 0)
    return "vhost is for engine = rabbitmq";
  if (!kafka && (r->session > 0 || r->sasl != HK_SASL_PLAIN))
    return "session and sasl are for engine = kafka";
  if (kafka && r->session == 0)
    r->session = 10 * SECOND;
  return NULL;
}

/* Who we are to the brokers, and they to us. */
static const char *look_at_login(const struct hk_cluster_rule *r)
{
  const bool tls = r->broker[0].tls, kafka = r->engine == HK_CLUSTER_KAFKA;
  if (!tls && (r->ca[0] || r->certificate[0] || r->key[0]))
    return kafka ? "ca, certificate and key are for url = kafkas://" : "ca, certificate and key are for url = amqps://";
  if (!r->certificate[0] != !r->key[0])
    return "certificate and key are needed together";
  if (!r->user[0] != !r->password[0])
    return "user and password_file are needed together";
  if (r->password[0] && !tls && !r->insecure && !all_near(r))
    return kafka ? "the password would go unencrypted, where everybody on the way can read it: take url = kafkas://, or insecure "
                   "= yes"
                 : "the password would go unencrypted, where everybody on the way can read it: take url = amqps://, or insecure "
                   "= yes";
  return NULL;
}

int hk_cluster_rule_finish(struct hk_cluster_rule *r, char *error, size_t size)
{
  const char *why = take_urls(r);
  if (!why && r->role == HK_CLUSTER_NONE)
    why = "needs role = all, or role = gateway, which takes points from peers, and on others role = scorer, which scores them";
  if (!why)
    why = look_at_engine(r);
  if (!why)
    why = look_at_login(r);
  if (!why)
    why = look_at_name(r);
  if (!why && r->address[0] && !address_valid(r->address))
    why = "address is HOST:PORT, where others reach the binary listener of this machine";
  if (!why)
    why = look_at_partitions(r);
  if (why)
    snprintf(error, size, "%s", why);
  return why ? -EINVAL : 0;
}
