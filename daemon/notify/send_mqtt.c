#include "daemon/notify/send_mqtt.h"

#include "daemon/base/log.h"

#include <errno.h>
#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define TURN_MS 100
#define KEEPALIVE 60 /* s */
#define QOS 1
#define REFUSED 0x80 /* reasons of MQTT 5 from here on say no */

/* How far it is; the library calls back from mosquitto_loop alone. */
struct publishing {
  const struct hk_notify_rule *rule;
  const struct hk_message *message;
  uint32_t acknowledged;
  int refused; /* what the broker said instead; 0: nothing */
  bool connected, left;
  int error; /* of the library */
};

void hk_send_mqtt_begin(void)
{
  (void)mosquitto_lib_init();
}

static int publish(struct mosquitto *m, const struct hk_message *message, const struct hk_message_piece *piece)
{
  const char *at = message->body.data;
  char *topic = strndup(at + piece->topic, piece->topic_length);
  const int status =
      topic ? mosquitto_publish_v5(m, NULL, topic, (int)piece->payload_length, at + piece->payload, QOS, piece->retain, NULL)
            : MOSQ_ERR_NOMEM;
  free(topic);
  return status;
}

static void on_connect(struct mosquitto *m, void *arg, int reason, int flags, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)flags, (void)properties;
  if (reason != 0) {
    p->refused = reason;
    return;
  }
  p->connected = true;
  for (uint32_t i = 0; i < p->message->n_pieces && p->error == 0; i++)
    p->error = publish(m, p->message, &p->message->piece[i]);
}

static void on_publish(struct mosquitto *m, void *arg, int id, int reason, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)m, (void)id, (void)properties;
  p->acknowledged++;
  if (reason >= REFUSED && p->refused == 0)
    p->refused = reason;
}

static void on_disconnect(struct mosquitto *m, void *arg, int reason, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)m, (void)properties;
  p->left = true;
  if (reason >= REFUSED && p->refused == 0)
    p->refused = reason;
}

static int set_up(struct mosquitto *m, const struct hk_notify_rule *r, const char *password)
{
  const struct hk_notify_tls *t = &r->tls;
  int status = mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, r->mqtt.version == 5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
  mosquitto_connect_v5_callback_set(m, on_connect);
  mosquitto_publish_v5_callback_set(m, on_publish);
  mosquitto_disconnect_v5_callback_set(m, on_disconnect);
  if (status == 0)
    status = mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
  if (status == 0 && r->user[0])
    status = mosquitto_username_pw_set(m, r->user, password);
  if (status != 0 || strncmp(r->server, "mqtts://", 8) != 0)
    return status;
  if (!t->ca[0])
    status = mosquitto_int_option(m, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
  return status ? status
                : mosquitto_tls_set(m, t->ca[0] ? t->ca : NULL, NULL, t->certificate[0] ? t->certificate : NULL,
                                    t->key[0] ? t->key : NULL, NULL);
}

/* Begins to connect, for which nobody waits here. */
static int begin(struct mosquitto *m, const struct hk_notify_rule *r)
{
  char host[HK_NOTIFY_TEXT];
  snprintf(host, sizeof host, "%s", strstr(r->server, "://") + 3);
  char *port = strrchr(host, ':'), *name = host;
  *port++ = 0;
  if (name[0] == '[' && port[-2] == ']') {
    port[-2] = 0;
    name++;
  }
  return mosquitto_connect_async(m, name, (int)strtol(port, NULL, 10), KEEPALIVE);
}

static struct mosquitto *make(struct publishing *p)
{
  char id[HK_NOTIFY_TEXT];
  uint32_t number = 0;
  (void)!getrandom(&number, sizeof number, 0);
  if (p->rule->mqtt.client[0])
    snprintf(id, sizeof id, "%s", p->rule->mqtt.client);
  else
    snprintf(id, sizeof id, "hankeld-%s-%08x", p->rule->name, number);
  return mosquitto_new(id, true, p);
}

static void say(struct hk_answer *answer, const struct publishing *p, int status, bool late)
{
  const bool v5 = p->rule->mqtt.version == 5;
  if (p->refused)
    snprintf(answer->text, sizeof answer->text, "the broker says: %s",
             v5 || p->connected ? mosquitto_reason_string(p->refused) : mosquitto_connack_string(p->refused));
  else if (status == MOSQ_ERR_ERRNO)
    snprintf(answer->text, sizeof answer->text, "%s", errno ? strerror(errno) : "no connection");
  else if (late)
    snprintf(answer->text, sizeof answer->text, "no answer within %g s; %u of %u acknowledged", (double)p->rule->timeout / 1e9,
             p->acknowledged, p->message->n_pieces);
  else if (status != 0)
    snprintf(answer->text, sizeof answer->text, "%s", mosquitto_strerror(status));
  else if (p->left)
    snprintf(answer->text, sizeof answer->text, "the broker has closed the connection");
  else
    snprintf(answer->text, sizeof answer->text, "acknowledged: %u", p->acknowledged);
}

/* Where TLS is to begin the library takes no notice of a connection that is refused: its socket is closed then. */
static int look_at_socket(struct mosquitto *m)
{
  struct tcp_info info = { 0 };
  socklen_t size = sizeof info;
  const int fd = mosquitto_socket(m);
  if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || info.tcpi_state != TCP_CLOSE)
    return 0;
  errno = ECONNREFUSED;
  return MOSQ_ERR_ERRNO;
}

enum hk_sent hk_send_mqtt(const struct hk_notify_rule *r, const char *password, const struct hk_message *message,
                          const atomic_bool *quit, struct hk_answer *answer)
{
  struct publishing p = { .rule = r, .message = message };
  struct mosquitto *m = make(&p);
  const int64_t until = hk_now() + r->timeout;
  int status = m ? set_up(m, r, password) : MOSQ_ERR_NOMEM;
  errno = 0;
  if (status == 0)
    status = begin(m, r);
  while (status == 0 && p.error == 0 && p.refused == 0 && !p.left && !(p.connected && p.acknowledged >= message->n_pieces) &&
         hk_now() < until && !(quit && atomic_load(quit))) {
    status = mosquitto_loop(m, TURN_MS, 1);
    if (status == 0 && !p.connected)
      status = look_at_socket(m);
  }
  status = status ? status : p.error;
  const bool done = status == 0 && p.refused == 0 && p.connected && p.acknowledged >= message->n_pieces;
  say(answer, &p, status, !done && hk_now() >= until);
  if (m && p.connected && !p.left) {
    (void)mosquitto_disconnect_v5(m, 0, NULL);
    (void)mosquitto_loop(m, 0, 1);
  }
  mosquitto_destroy(m);
  return done ? HK_SENT : HK_SENT_LATER;
}
