/* The kinds of sections of a configuration: the beginning of each, its keys, and the checks once it is complete. The keys of
 * [daemon] are a table in daemon_keys.c; groups, fields, maintenance windows and the security keys of listeners have files of
 * their own. */
#include "daemon/config/config_section_kinds.h"

#include "cpu/detector_keys.h"
#include "cpu/library.h"
#include "cpu/sonames.h"
#include "cpu/suggest.h"
#include "daemon/base/address.h"
#include "daemon/config/daemon_keys.h"
#include "daemon/config/field_section.h"
#include "daemon/config/group_section.h"
#include "daemon/config/maintenance_rule.h"
#include "daemon/config/section_name.h"
#include "proto/line/line.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The characters of names of files. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

/* --- [daemon] ------------------------------------------------------------------------------------------------------------ */

static bool daemon_begin(struct hk_config_reading *r, const char *name)
{
  (void)name;
  if (r->any_daemon)
    hk_config_complain(r, r->line, "there is a [daemon] section already");
  r->any_daemon = true;
  return true;
}

static void daemon_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_key_set(r->config, name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

/* --- [listen NAME] ------------------------------------------------------------------------------------------------------- */

static bool listen_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_listener made = { .precision = 1 };
  const struct hk_config_sections there = {
    "listen", "listeners", c->listeners[0].name, sizeof *c->listeners, c->n_listeners, HK_CONFIG_LISTENERS_MAX
  };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  c->listeners[c->n_listeners++] = made;
  return true;
}

/* Reports that the value of a key of a listener is none of some words, which commas separate. */
static void listen_refuse(struct hk_config_reading *r, const char *name, const char *value, const char *words)
{
  char error[256];
  snprintf(error, sizeof error, "%s = %.64s: not one of %s", name, value, words);
  hk_suggest_of(value, words, error, sizeof error);
  hk_config_complain(r, r->line, "%s", error);
}

static void listen_key(struct hk_config_reading *r, const char *name, const char *value)
{
  struct hk_config_listener *l = &r->config->listeners[r->config->n_listeners - 1];
  uint32_t word;
  char error[256];
  const int status = hk_rules_set(&l->rules, name, value, error, sizeof error);
  if (status < 0) {
    hk_config_complain(r, r->line, "%s", error);
  } else if (status == 0) {
    return;
  } else if (strcmp(name, "protocol") == 0) {
    if (hk_word_find(hk_protocol_words, value, &word) != 0)
      listen_refuse(r, name, value, "binary, line, text, http");
    else
      l->protocol = (enum hk_protocol)word;
  } else if (strcmp(name, "transport") == 0) {
    if (hk_word_find(hk_transport_words, value, &word) != 0)
      listen_refuse(r, name, value, "tcp, udp");
    else
      l->transport = (enum hk_transport)word;
  } else if (strcmp(name, "address") == 0) {
    if (hk_address_parse(value, &l->address) != 0)
      hk_config_complain(r, r->line, "address = %.128s: not a numeric address and port such as 127.0.0.1:7410 or [::1]:7410",
                         value);
  } else if (strcmp(name, "precision") == 0) {
    l->precision = hk_precision_parse(value);
    if (l->precision == 0)
      listen_refuse(r, name, value, "ns, us, ms, s");
  } else {
    (void)hk_rules_no_key(name, error, sizeof error);
    hk_config_complain(r, r->line, "%s", error);
  }
}

static void listen_fault(void *arg, const char *message)
{
  struct hk_config_reading *r = arg;
  hk_config_complain(r, r->section_line, "[listen %s]: %s", r->config->listeners[r->config->n_listeners - 1].name, message);
}

/* Each address has one listener, except port 0, which is any free port. */
static void look_for_twin(struct hk_config_reading *r, const struct hk_config_listener *l)
{
  char address[HK_ADDRESS_MAX], other[HK_ADDRESS_MAX];
  hk_address_format((const struct sockaddr *)&l->address, address);
  if (strcmp(strrchr(address, ':'), ":0") == 0)
    return;
  for (const struct hk_config_listener *each = r->config->listeners; each < l; each++) {
    hk_address_format((const struct sockaddr *)&each->address, other);
    if (each->transport == l->transport && strcmp(address, other) == 0) {
      hk_config_complain(r, r->section_line, "[listen %s]: %s over %s is the address of [listen %s] already", l->name, address,
                         hk_transport_name(l->transport), each->name);
      return;
    }
  }
}

/* Checks for keys that a listener of HTTP cannot have. */
static void section_kinds_look_at_http(struct hk_config_reading *r, const struct hk_config_listener *l)
{
#ifndef HK_HAVE_HTTP
  listen_fault(r, "protocol = http needs a hankeld that is built with libwebsockets; this one is not (meson option http)");
#endif
  if (l->transport == HK_TRANSPORT_UDP)
    listen_fault(r, "protocol = http needs transport = tcp");
}

static void listen_end(struct hk_config_reading *r)
{
  struct hk_config_listener *l = &r->config->listeners[r->config->n_listeners - 1];
  if (!hk_config_seen(r, "protocol"))
    hk_config_complain(r, r->section_line, "[listen %s] needs a protocol: binary, line, text or http", l->name);
  if (!hk_config_seen(r, "address"))
    hk_config_complain(r, r->section_line, "[listen %s] needs an address such as 127.0.0.1:7410", l->name);
  if (l->protocol == HK_PROTOCOL_TEXT && l->transport == HK_TRANSPORT_UDP)
    hk_config_complain(r, r->section_line, "[listen %s]: the text protocol needs transport = tcp", l->name);
  if (l->protocol == HK_PROTOCOL_HTTP)
    section_kinds_look_at_http(r, l);
  if (l->protocol != HK_PROTOCOL_LINE && hk_config_seen(r, "precision"))
    hk_config_complain(r, r->section_line, "[listen %s]: precision is for protocol = line", l->name);
  if (l->address.ss_family != 0) {
    hk_rules_finish(&l->rules, &l->address, l->transport == HK_TRANSPORT_UDP, l->protocol == HK_PROTOCOL_BINARY, listen_fault, r);
    look_for_twin(r, l);
  }
}

/* --- [detector NAME] ----------------------------------------------------------------------------------------------------- */

static bool detector_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_config_detector made = { 0 };
  const struct hk_config_sections there = { "detector",           "detectors",    c->detectors[0].name,
                                            sizeof *c->detectors, c->n_detectors, HK_CONFIG_DETECTORS_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  if (strchr(name, HK_DERIVED_MARK)) {
    hk_config_complain(r, r->line, "[detector %s]: a name has no %c, which marks further algorithms, as in NAME%cgraph", name,
                       HK_DERIVED_MARK, HK_DERIVED_MARK);
    return false;
  }
  made.number = c->n_detectors;
  c->detectors[c->n_detectors++] = made;
  r->draft = (struct hk_detectors_draft){ 0 };
  return true;
}

static void detector_key(struct hk_config_reading *r, const char *name, const char *value)
{
  struct hk_config_detector *d = &r->config->detectors[r->config->n_detectors - 1];
  if (strcmp(name, "match") == 0) {
    if (value[0] == 0 || strlen(value) >= sizeof d->match)
      hk_config_complain(r, r->line, "match: a glob of 1 to %zu bytes is needed; * matches every sensor", sizeof d->match - 1);
    else
      snprintf(d->match, sizeof d->match, "%s", value);
    return;
  }
  const char *names[KEYS + 1] = { [KEYS] = "match" };
  char error[256];
  const bool known = hk_detector_key_names(names, name) || strchr(name, '.'); /* of one algorithm */
  if ((known ? hk_detectors_set(&r->draft, name, value, error, sizeof error)
             : hk_section_no_key("detector", name, names, KEYS + 1, sizeof *names, error, sizeof error)) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

/* Each algorithm after the first becomes a detector of its own, after its section's. */
static void make_companions(struct hk_config_reading *r, struct hk_config_detector *d)
{
  struct hk_config *c = r->config;
  struct hk_detector made[HK_ALGORITHMS];
  char error[256];
  const int n = hk_detectors_finish(&r->draft, made, error, sizeof error);
  if (n < 0) {
    hk_config_complain(r, r->section_line, "[detector %s]: %s", d->name, error);
    return;
  }
  d->detector = made[0];
  for (int i = 1; i < n; i++) {
    const char *algorithm = hk_algorithm_name(made[i].algorithm);
    if (c->n_detectors == HK_CONFIG_DETECTORS_MAX) {
      hk_config_complain(r, r->section_line, "more than %d detectors, including those of further algorithms",
                         HK_CONFIG_DETECTORS_MAX);
      return;
    }
    struct hk_config_detector *companion = &c->detectors[c->n_detectors];
    *companion = *d;
    const int length = snprintf(companion->name, sizeof companion->name, "%s%c%s", d->name, HK_DERIVED_MARK, algorithm);
    if (length >= (int)sizeof companion->name)
      hk_config_complain(r, r->section_line, "[detector %s]: its name is too long for one with %c%s behind it", d->name,
                         HK_DERIVED_MARK, algorithm);
    companion->detector = made[i];
    companion->number = c->n_detectors++;
    companion->derived = true;
  }
}

static void detector_end(struct hk_config_reading *r)
{
  struct hk_config_detector *d = &r->config->detectors[r->config->n_detectors - 1];
  const bool refused = r->faults > r->faults_before; /* a key that was not accepted would be reported as missing */
  if (!hk_config_seen(r, "match"))
    hk_config_complain(r, r->section_line, "[detector %s] needs match = GLOB, the sensors that it is for; * is all of them",
                       d->name);
  if (!refused)
    make_companions(r, d);
}

/* --- [maintenance NAME] -------------------------------------------------------------------------------------------------- */

static bool maintenance_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_maintenance_rule made = { 0 };
  const struct hk_config_sections there = { "maintenance",          "maintenance windows", c->maintenance[0].name,
                                            sizeof *c->maintenance, c->n_maintenance,      HK_CONFIG_MAINTENANCE_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  c->maintenance[c->n_maintenance++] = made;
  return true;
}

static void maintenance_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[256];
  if (hk_maintenance_key(&r->config->maintenance[r->config->n_maintenance - 1], name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

static void maintenance_end(struct hk_config_reading *r)
{
  struct hk_maintenance_rule *m = &r->config->maintenance[r->config->n_maintenance - 1];
  char error[256];
  if (r->faults > r->faults_before) /* a key that was not accepted would be reported as missing */
    return;
  if (hk_maintenance_finish(m, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[maintenance %s]: %s", m->name, error);
}

/* --- [incidents] --------------------------------------------------------------------------------------------------------- */

static bool incidents_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_incidents_sections *all = &r->config->incidents;
  struct hk_incidents_rule *rule = &all->of[all->n];
  const bool plain = strlen(name) < sizeof rule->name && !name[strspn(name, PLAIN)];
  if (!plain)
    hk_config_complain(r, r->line, "[incidents %.64s]: a name has letters, digits, - and _, at most %zu", name,
                       sizeof rule->name - 1);
  else if (hk_incidents_section(all, name))
    hk_config_complain(r, r->line, "there is an [incidents%s%s] section already", name[0] ? " " : "", name);
  else if (all->n == HK_INCIDENTS_MOST)
    hk_config_complain(r, r->line, "too many [incidents NAME] sections; at most %u", HK_INCIDENTS_MOST);
  else {
    *rule = (struct hk_incidents_rule){ 0 };
    memcpy(rule->name, name, strlen(name) + 1);
    all->n++;
    return true;
  }
  return false;
}

static void incidents_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[256];
  if (hk_incidents_key(&r->config->incidents.of[r->config->incidents.n - 1], name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

static void incidents_end(struct hk_config_reading *r)
{
  const struct hk_incidents_sections *all = &r->config->incidents;
  const struct hk_incidents_rule *last = &all->of[all->n - 1], *before = all->n > 1 ? last - 1 : NULL;
  const char *blank = last->name[0] ? " " : "";
  if (r->faults > r->faults_before)
    return;
  if (last->interval == 0)
    hk_config_complain(r, r->section_line, "[incidents%s%s] needs interval = DURATION, the time between two points of a sensor",
                       blank, last->name);
  if (before && (!before->match[0] || strcmp(before->match, "*") == 0))
    hk_config_complain(
        r, r->section_line,
        "[incidents%s%s] has no sensors: the first section that matches a sensor has it, and [incidents%s%s] before it "
        "matches all",
        blank, last->name, before->name[0] ? " " : "", before->name);
}

/* --- [notify NAME] ------------------------------------------------------------------------------------------------------- */

static bool notify_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_notify_rule made = { 0 };
  const struct hk_config_sections there = { "notify",          "receivers of alerts", c->notify[0].name,
                                            sizeof *c->notify, c->n_notify,           HK_CONFIG_NOTIFY_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  if (name[strspn(name, PLAIN)]) {
    hk_config_complain(r, r->line, "[notify %s]: a name has letters, digits, - and _ only, because file names contain it", name);
    return false;
  }
#ifndef HK_HAVE_NOTIFY
  hk_config_complain(r, r->line, "[notify %s] needs a hankeld that is built with libcurl; this one is not (meson option notify)",
                     name);
#else
  char why[HK_LIBRARY_WHY];
  if (hk_library_find(HK_SONAME_CURL, why, sizeof why) != 0)
    hk_config_complain(r, r->line, "[notify %s]: %s", name, why);
#endif
  hk_notify_rule_begin(&made);
  c->notify[c->n_notify++] = made;
  return true;
}

static void notify_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_notify_rule_key(&r->config->notify[r->config->n_notify - 1], name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

static void notify_end(struct hk_config_reading *r)
{
  struct hk_notify_rule *rule = &r->config->notify[r->config->n_notify - 1];
  char error[512];
  if (r->faults > r->faults_before) /* a key that was not accepted would be reported as missing */
    return;
  if (hk_notify_rule_finish(rule, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[notify %s]: %s", rule->name, error);
}

/* --- [pictures NAME] ----------------------------------------------------------------------------------------------------- */

static bool pictures_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_pictures_rules *all = &r->config->pictures;
  struct hk_pictures_rule made = hk_pictures_default();
  const struct hk_config_sections there = { "pictures", "sections of pictures", all->rule[0].name, sizeof *all->rule,
                                            all->n,     HK_CONFIG_PICTURES_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  all->rule[all->n++] = made;
  return true;
}

static void pictures_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_pictures_key(&r->config->pictures.rule[r->config->pictures.n - 1], name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

static void pictures_end(struct hk_config_reading *r)
{
  if (!hk_config_seen(r, "match"))
    hk_config_complain(r, r->section_line, "[pictures %s] needs match = GLOB, the names of its cameras",
                       r->config->pictures.rule[r->config->pictures.n - 1].name);
}

/* --- [mqtt NAME] --------------------------------------------------------------------------------------------------------- */

static bool mqtt_begin(struct hk_config_reading *r, const char *name)
{
  struct hk_config *c = r->config;
  struct hk_mqtt_rule made = { 0 };
  const struct hk_config_sections there = { "mqtt",    "brokers",         c->mqtt.rule[0].name, sizeof *c->mqtt.rule,
                                            c->mqtt.n, HK_CONFIG_MQTT_MAX };
  if (!hk_config_one_more(r, there, name, made.name))
    return false;
  if (name[strspn(name, PLAIN)]) {
    hk_config_complain(r, r->line, "[mqtt %s]: a name has letters, digits, - and _ only, because file names contain it", name);
    return false;
  }
#ifndef HK_HAVE_MQTT
  hk_config_complain(r, r->line, "[mqtt %s] needs a hankeld that is built with libmosquitto; this one is not (meson option mqtt)",
                     name);
#endif
  hk_mqtt_rule_begin(&made);
  c->mqtt.rule[c->mqtt.n++] = made;
  return true;
}

static void mqtt_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_mqtt_rule_key(&r->config->mqtt.rule[r->config->mqtt.n - 1], name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

static void mqtt_end(struct hk_config_reading *r)
{
  struct hk_mqtt_rule *rule = &r->config->mqtt.rule[r->config->mqtt.n - 1];
  char error[512];
  if (r->faults > r->faults_before) /* a key that was not accepted would be reported as missing */
    return;
  if (hk_mqtt_rule_finish(rule, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[mqtt %s]: %s", rule->name, error);
  for (uint32_t i = 0; i + 1 < r->config->mqtt.n; i++)
    if (strcmp(r->config->mqtt.rule[i].client_id, rule->client_id) == 0 && strcmp(r->config->mqtt.rule[i].url, rule->url) == 0)
      hk_config_complain(r, r->section_line,
                         "[mqtt %s]: [mqtt %s] has the same client_id at the same broker, which would disconnect one of them",
                         rule->name, r->config->mqtt.rule[i].name);
}

/* --- [cluster] ----------------------------------------------------------------------------------------------------------- */

static bool cluster_begin(struct hk_config_reading *r, const char *name)
{
  if (name[0])
    hk_config_complain(r, r->line, "[cluster] has no name");
  if (r->config->cluster.partitions > 0)
    hk_config_complain(r, r->line, "there is a [cluster] section already");
  hk_cluster_rule_begin(&r->config->cluster);
  return true;
}

static void cluster_key(struct hk_config_reading *r, const char *name, const char *value)
{
  char error[512];
  if (hk_cluster_rule_key(&r->config->cluster, name, value, error, sizeof error) != 0)
    hk_config_complain(r, r->line, "%s", error);
}

/* What a cluster's engine needs that this hankeld is built without; NULL: nothing. */
static const char *cluster_lacks(const struct hk_cluster_rule *rule)
{
#ifndef HK_HAVE_RABBITMQ
  if (rule->engine == HK_CLUSTER_RABBITMQ)
    return "engine = rabbitmq needs a hankeld that is built with librabbitmq; this one is not (meson option rabbitmq)";
#endif
#ifndef HK_HAVE_KAFKA
  if (rule->engine == HK_CLUSTER_KAFKA)
    return "engine = kafka needs a hankeld that is built with librdkafka; this one is not (meson option kafka)";
#endif
  (void)rule;
  return NULL;
}

static void cluster_end(struct hk_config_reading *r)
{
  char error[512];
  const char *lacks = cluster_lacks(&r->config->cluster);
#ifdef HK_HAVE_KAFKA
  if (r->config->cluster.engine == HK_CLUSTER_KAFKA && hk_library_find(HK_SONAME_RDKAFKA, error, sizeof error) != 0)
    lacks = error;
#endif
  if (lacks)
    hk_config_complain(r, r->section_line, "[cluster] %s", lacks);
  if (r->faults > r->faults_before) /* a key that was not accepted would be reported as missing */
    return;
  if (hk_cluster_rule_finish(&r->config->cluster, error, sizeof error) != 0)
    hk_config_complain(r, r->section_line, "[cluster] %s", error);
}

/* --- all of them ------------------------------------------------------------------------------------------------------- */

const struct hk_config_kind hk_config_kinds[] = {
  { "daemon", daemon_begin, daemon_key, NULL },
  { "listen", listen_begin, listen_key, listen_end },
  { "detector", detector_begin, detector_key, detector_end },
  { "group", hk_config_group_begin, hk_config_group_key, hk_config_group_end },
  { "field", hk_config_field_begin, hk_config_field_key, hk_config_field_end },
  { "maintenance", maintenance_begin, maintenance_key, maintenance_end },
  { "incidents", incidents_begin, incidents_key, incidents_end },
  { "notify", notify_begin, notify_key, notify_end },
  { "mqtt", mqtt_begin, mqtt_key, mqtt_end },
  { "pictures", pictures_begin, pictures_key, pictures_end },
  { "cluster", cluster_begin, cluster_key, cluster_end },
  { NULL, NULL, NULL, NULL },
};
