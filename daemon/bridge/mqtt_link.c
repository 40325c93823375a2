#include "daemon/bridge/mqtt_link.h"

#include "daemon/base/mqtt_client.h"
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <mqtt_protocol.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND 1000000000ll
#define PAUSE (SECOND / 5) /* before the first reconnection; doubled up to */
#define PAUSE_MOST (30 * SECOND)
#define STEADY (10 * SECOND) /* after this time a connection counts as good */
#define ANSWER (10 * SECOND) /* for the broker to accept a connection, and then to reply */
#define KEEPALIVE 30         /* s */
#define TURN 1000            /* maximum wait of a turn, ms */
#define HELD 50              /* ms between two checks whether held messages may be acknowledged */
#define PASSWORD_MOST 4096
#define PARTING (2 * SECOND) /* for the broker to take the last messages */

/* --- errors ---------------------------------------------------------------------------------------------------------------- */

static const char *words(int rc)
{
  return rc == MOSQ_ERR_ERRNO ? strerror(errno) : mosquitto_strerror(rc);
}

static void mqtt_link_closed(struct hk_mqtt_link *l, const char *why)
{
  struct hk_bridge *b = l->bridge;
  const bool was = l->greeted, steady = was && hk_now() - l->since > STEADY;
  if (steady)
    l->pause = PAUSE;
  l->connected = l->greeted = l->full = false;
  l->retry = hk_now() + l->pause / 2 + random() % (l->pause / 2);
  l->pause = 2 * l->pause < PAUSE_MOST ? 2 * l->pause : PAUSE_MOST;
  if (!l->told || strcmp(why, l->why) != 0)
    hk_log(b->net->log, HK_LOG_WARNING, "[mqtt %s]: %s %s: %s%s%s%s; trying again", b->rule.name, b->rule.url,
           was ? "is lost" : "cannot be reached", why, was && !steady ? " (so soon: has another client the client_id " : "",
           was && !steady ? b->rule.client_id : "", was && !steady ? "?)" : "");
  l->told = true;
  if (why != l->why)
    snprintf(l->why, sizeof l->why, "%s", why);
  hk_bridge_note(b, HK_BRIDGE_FAILING, l->why);
}

/* Closes an unusable connection, and connects again later. */
static void link_give_up(struct hk_mqtt_link *l, const char *why)
{
  const int fd = mosquitto_socket(l->mosq);
  if (fd >= 0)
    (void)shutdown(fd, SHUT_RDWR); /* libmosquitto closes it when it reconnects, or is destroyed */
  mqtt_link_closed(l, why);
}

/* --- callbacks ------------------------------------------------------------------------------------------------------------- */

static void on_connect(struct mosquitto *mosq, void *arg, int rc, int flags, const mosquitto_property *properties)
{
  struct hk_mqtt_link *l = arg;
  struct hk_bridge *b = l->bridge;
  (void)properties;
  if (rc != 0) {
    snprintf(l->why, sizeof l->why, "%s",
             b->rule.version == HK_MQTT_5 && rc >= 128 ? mosquitto_reason_string(rc) : mosquitto_connack_string(rc));
    if (b->rule.version == HK_MQTT_5 && (rc == 1 || rc == MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION))
      snprintf(l->why, sizeof l->why, "it does not support MQTT 5: set version = 3.1.1");
    return;
  }
  l->greeted = true;
  l->told = false;
  l->since = hk_now();
  l->kept = flags & 1; /* session present */
  l->n_subscribed = 0;
  (void)mosq;
  hk_log(b->net->log, HK_LOG_NOTICE, "[mqtt %s]: connected to %s, to %s", b->rule.name, b->rule.url,
         b->kind->way == HK_BRIDGE_IN ? "subscribe" : "publish");
  hk_bridge_note(b, HK_BRIDGE_CONNECTED, NULL);
  l->kind->greeted(l);
}

static void on_disconnect(struct mosquitto *mosq, void *arg, int rc, const mosquitto_property *properties)
{
  struct hk_mqtt_link *l = arg;
  (void)mosq, (void)properties;
  if (rc == MQTT_RC_SESSION_TAKEN_OVER)
    snprintf(l->why, sizeof l->why, "another client has connected with the same client_id (%.100s%s)", l->bridge->rule.client_id,
             l->kind->suffix);
  else if (rc >= 128)
    snprintf(l->why, sizeof l->why, "%s", mosquitto_reason_string(rc));
}

static void on_message(struct mosquitto *mosq, void *arg, const struct mosquitto_message *m, const mosquitto_property *properties)
{
  struct hk_mqtt_link *l = arg;
  (void)mosq, (void)properties;
  l->came = true;
  if (!l->kind->message(l, m))
    l->full = true;
}

static void on_subscribe(struct mosquitto *mosq, void *arg, int id, int n, const int *granted,
                         const mosquitto_property *properties)
{
  struct hk_mqtt_link *l = arg;
  (void)mosq, (void)properties;
  for (uint32_t i = 0; i < l->n_subscribed && n > 0; i++)
    if (l->subscription[i] == id)
      l->kind->subscribed(l, i, granted[0]);
}

static void on_publish(struct mosquitto *mosq, void *arg, int id, int rc, const mosquitto_property *properties)
{
  struct hk_mqtt_link *l = arg;
  (void)mosq, (void)properties;
  if (l->writes) /* of QoS 0: it is written */
    return;
  if (rc >= 128 && l->kind->refused)
    l->kind->refused(l, rc);
  if (l->kind->taken)
    l->kind->taken(l, id);
}

/* --- connecting ------------------------------------------------------------------------------------------------------------ */

/* Checks that the broker's port accepts connections, so that libmosquitto, whose connecting cannot be interrupted, does not
 * block the bridge for long. Returns 0 or a negative errno; -EINTR: the bridge is interrupted; *why. */
static int look_for(struct hk_mqtt_link *l, const char **why)
{
  const struct hk_mqtt_rule *rule = &l->bridge->rule;
  const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
  struct addrinfo *addresses = NULL;
  char port[8];
  snprintf(port, sizeof port, "%u", rule->address.port);
  int status = getaddrinfo(rule->address.host, port, &hints, &addresses);
  *why = status != 0 ? gai_strerror(status) : "";
  status = status != 0 ? -EHOSTUNREACH : -EADDRNOTAVAIL;
  for (struct addrinfo *a = addresses; a && status != 0 && status != -EINTR; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof status;
    status = fd < 0 ? -errno : connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : -errno;
    if (status == -EINPROGRESS) {
      struct pollfd p[2] = { { .fd = fd, .events = POLLOUT }, { .fd = l->bridge->wake, .events = POLLIN } };
      const int64_t until = hk_now() + ANSWER;
      int n = 0;
      while (n == 0 && hk_now() < until && !hk_bridge_interrupted(l->bridge)) {
        n = poll(p, 2, TURN);
        if (n > 0 && p[1].revents)
          hk_bridge_woken(l->bridge);
        n = n > 0 && p[0].revents;
      }
      if (!n)
        status = hk_bridge_interrupted(l->bridge) ? -EINTR : -ETIMEDOUT;
      else
        status = getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &size) == 0 ? -status : -errno;
    }
    if (fd >= 0)
      close(fd);
    *why = strerror(-status);
  }
  if (addresses)
    freeaddrinfo(addresses);
  return status;
}

/* The password may have changed since. */
static int show_who(struct hk_mqtt_link *l, char why[HK_BRIDGE_WHY])
{
  const struct hk_mqtt_rule *rule = &l->bridge->rule;
  char *password = NULL, wrong[HK_SECRET_WHY];
  size_t size = 0;
  if (!rule->user[0])
    return 0;
  if (rule->password[0]) {
    if (hk_secret_read(rule->password, PASSWORD_MOST, HK_SECRET_FILE, &password, &size, wrong) != 0) {
      snprintf(why, HK_BRIDGE_WHY, "password_file %.80s: %.80s", rule->password, wrong);
      return -EACCES;
    }
    password[strcspn(password, "\r\n")] = 0;
  }
  const int rc = mosquitto_username_pw_set(l->mosq, rule->user, password);
  hk_secret_free(password, size);
  snprintf(why, HK_BRIDGE_WHY, "%s", words(rc));
  return rc == MOSQ_ERR_SUCCESS ? 0 : -EINVAL;
}

static void mqtt_link_connect_to(struct hk_mqtt_link *l)
{
  const struct hk_mqtt_rule *rule = &l->bridge->rule;
  char wrong[HK_BRIDGE_WHY];
  const char *why;
  mosquitto_property *properties = NULL;
  int status = look_for(l, &why);
  if (status == -EINTR)
    return;
  if (status == 0) {
    status = show_who(l, wrong);
    why = wrong;
  }
  if (status != 0) {
    mqtt_link_closed(l, why);
    return;
  }
  if (rule->version == HK_MQTT_5 &&
      (mosquitto_property_add_int32(&properties, MQTT_PROP_SESSION_EXPIRY_INTERVAL, (uint32_t)(rule->session / SECOND)) != 0 ||
       mosquitto_property_add_int32(&properties, MQTT_PROP_MAXIMUM_PACKET_SIZE, HK_FRAME_MAX) != 0)) {
    mosquitto_property_free_all(&properties);
    mqtt_link_closed(l, "no memory");
    return;
  }
  l->why[0] = 0;
  const int rc = mosquitto_connect_bind_v5(l->mosq, rule->address.host, rule->address.port, KEEPALIVE, NULL, properties);
  mosquitto_property_free_all(&properties);
  if (rc != MOSQ_ERR_SUCCESS) {
    mqtt_link_closed(l, words(rc));
    return;
  }
  l->connected = true;
  l->deadline = hk_now() + ANSWER;
}

/* --- turns ----------------------------------------------------------------------------------------------------------------- */

/* rc: of a call of libmosquitto. False: the connection is lost. */
static bool good(struct hk_mqtt_link *l, int rc)
{
  if (rc == MOSQ_ERR_SUCCESS)
    return true;
  const char *why = l->why[0] ? l->why : words(rc);
  char copy[HK_BRIDGE_WHY];
  snprintf(copy, sizeof copy, "%s", why);
  link_give_up(l, copy);
  return false;
}

/* Reads messages until none came or no more are wanted: after one another may wait, and reading shows that as cheaply as
 * poll(). */
static bool mqtt_link_read_some(struct hk_mqtt_link *l)
{
  uint32_t n = 0;
  do {
    l->came = false;
    if (!good(l, mosquitto_loop_read(l->mosq, 1)))
      return false;
  } while (l->came && !l->full && l->connected && ++n < HK_MQTT_RECEIVE);
  return l->connected;
}

static bool write_all(struct hk_mqtt_link *l)
{
  if (!mosquitto_want_write(l->mosq))
    return true;
  l->writes = true;
  const int rc = mosquitto_loop_write(l->mosq, 1);
  l->writes = false;
  return good(l, rc);
}

/* Processes received messages, and then sends pending data, including acknowledgements. *held: not yet. */
static bool mqtt_link_settle(struct hk_mqtt_link *l, bool *held)
{
  *held = false;
  if (l->greeted && !l->kind->settle(l, held)) {
    if (l->connected)
      link_give_up(l, "the daemon could not take a message, and asks for it again");
    return false;
  }
  if (*held)
    return true;
  l->full = false;
  return write_all(l);
}

static bool mqtt_link_tick(struct hk_mqtt_link *l, int64_t now)
{
  if (!l->greeted && now >= l->deadline) {
    link_give_up(l, "it accepts connections but does not answer");
    return false;
  }
  if (now - l->misc < SECOND)
    return true;
  l->misc = now;
  return good(l, mosquitto_loop_misc(l->mosq));
}

/* Waits once, and processes the result. */
static void mqtt_link_turn(struct hk_mqtt_link *l, bool held)
{
  int timeout = held ? HELD : TURN, other = -1;
  short events = 0;
  if (l->kind->waits)
    l->kind->waits(l, &other, &events, &timeout);
  const bool writes = l->connected && !held && mosquitto_want_write(l->mosq);
  struct pollfd p[3] = { { .fd = l->bridge->wake, .events = POLLIN },
                         { .fd = l->connected ? mosquitto_socket(l->mosq) : -1,
                           .events = (short)((held ? 0 : POLLIN) | (writes ? POLLOUT : 0)) },
                         { .fd = other, .events = events } };
  if (!l->connected) {
    const int64_t left = (l->retry - hk_now()) / 1000000;
    timeout = left < 0 ? 0 : left < timeout ? (int)left + 1 : timeout;
  }
  const int n = poll(p, 3, timeout);
  if (n > 0 && p[0].revents)
    hk_bridge_woken(l->bridge);
  if (l->kind->woken)
    l->kind->woken(l);
  if (l->connected && n > 0 && p[1].revents & (POLLIN | POLLHUP | POLLERR))
    (void)(held && !(p[1].revents & POLLIN) ? good(l, MOSQ_ERR_CONN_LOST) : mqtt_link_read_some(l));
}

/* Closes the connection in order, waiting briefly until that is sent. */
static void part(struct hk_mqtt_link *l, bool held)
{
  const int64_t until = hk_now() + PARTING;
  if (!l->connected || held)
    return;
  if (l->greeted && l->kind->parting)
    l->kind->parting(l);
  (void)mosquitto_disconnect(l->mosq);
  while (mosquitto_socket(l->mosq) >= 0 && mosquitto_want_write(l->mosq) && hk_now() < until) {
    struct pollfd p = { .fd = mosquitto_socket(l->mosq), .events = POLLOUT };
    if (poll(&p, 1, 100) < 0 || mosquitto_loop_write(l->mosq, 1) != MOSQ_ERR_SUCCESS)
      return;
  }
}

static int mqtt_link_prepare(struct hk_mqtt_link *l, const char *will)
{
  const struct hk_mqtt_rule *rule = &l->bridge->rule;
  char id[HK_SECTION_TEXT + 8];
  snprintf(id, sizeof id, "%s%s", rule->client_id, l->kind->suffix);
  const struct hk_mqtt_client wanted = { .id = id,
                                         .version = rule->version == HK_MQTT_5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311,
                                         .tls = rule->address.tls,
                                         .ca = rule->ca,
                                         .certificate = rule->certificate,
                                         .key = rule->key };
  int rc = hk_mqtt_client_new(&l->mosq, &wanted, l);
  if (rc != MOSQ_ERR_SUCCESS)
    return rc;
  mosquitto_connect_v5_callback_set(l->mosq, on_connect);
  mosquitto_disconnect_v5_callback_set(l->mosq, on_disconnect);
  mosquitto_message_v5_callback_set(l->mosq, on_message);
  mosquitto_subscribe_v5_callback_set(l->mosq, on_subscribe);
  mosquitto_publish_v5_callback_set(l->mosq, on_publish);
  rc = mosquitto_threaded_set(l->mosq, true);
  if (rc == MOSQ_ERR_SUCCESS)
    rc = mosquitto_int_option(l->mosq, MOSQ_OPT_RECEIVE_MAXIMUM, HK_MQTT_RECEIVE);
  if (rc == MOSQ_ERR_SUCCESS && will)
    rc = mosquitto_will_set(l->mosq, will, 7, "offline", 1, true);
  return rc;
}

/* Cannot be tried at all: waits for another rule, or for the end. */
static void stay_out(struct hk_mqtt_link *l, int rc)
{
  char why[HK_BRIDGE_WHY];
  snprintf(why, sizeof why, "%s%s", words(rc), l->bridge->rule.address.tls ? " (ca, certificate and key are files in PEM)" : "");
  hk_log(l->bridge->net->log, HK_LOG_ERROR, "[mqtt %s]: cannot connect: %s; correct this, then reload", l->bridge->rule.name,
         why);
  hk_bridge_note(l->bridge, HK_BRIDGE_FAILING, why);
  while (!hk_bridge_interrupted(l->bridge)) {
    struct pollfd p = { .fd = l->bridge->wake, .events = POLLIN };
    if (poll(&p, 1, TURN) > 0)
      hk_bridge_woken(l->bridge);
  }
}

void hk_mqtt_link_run(struct hk_mqtt_link *l, const char *will)
{
  bool held = false;
  l->pause = PAUSE;
  hk_bridge_note(l->bridge, HK_BRIDGE_CONNECTING, "");
  const int rc = mqtt_link_prepare(l, will);
  if (rc != MOSQ_ERR_SUCCESS)
    stay_out(l, rc);
  while (rc == MOSQ_ERR_SUCCESS && !hk_bridge_interrupted(l->bridge)) {
    const int64_t now = hk_now();
    if (!l->connected && now >= l->retry)
      mqtt_link_connect_to(l);
    mqtt_link_turn(l, held);
    if (l->connected)
      (void)(mqtt_link_settle(l, &held) && mqtt_link_tick(l, hk_now()));
    held = held && l->connected;
  }
  part(l, held);
  mosquitto_destroy(l->mosq);
  l->mosq = NULL;
}

void hk_mqtt_link_subscribe(struct hk_mqtt_link *l, const char *filter, int qos)
{
  int id;
  const int rc = mosquitto_subscribe(l->mosq, &id, filter, qos);
  if (rc != MOSQ_ERR_SUCCESS) {
    hk_log(l->bridge->net->log, HK_LOG_ERROR, "[mqtt %s]: cannot subscribe to `%s`: %s", l->bridge->rule.name, filter, words(rc));
    return;
  }
  l->subscription[l->n_subscribed++] = id;
}

int hk_mqtt_link_publish(struct hk_mqtt_link *l, const char *topic, const void *data, size_t size, int qos, bool retain, int *id)
{
  const int rc = mosquitto_publish(l->mosq, id, topic, (int)size, data, qos, retain);
  return rc == MOSQ_ERR_SUCCESS ? 0 : rc == MOSQ_ERR_NOMEM ? -ENOMEM : rc == MOSQ_ERR_NO_CONN ? -ENOTCONN : -EINVAL;
}
