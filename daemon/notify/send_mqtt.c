#include "daemon/notify/send_mqtt.h"

#include "daemon/base/log.h"
#include "daemon/base/mqtt_client.h"

#include <errno.h>
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
#define REFUSED 0x80 /* reason codes of MQTT 5 from here on are refusals */

/* Progress of a connection; the library calls back from mosquitto_loop only. */
struct publishing {
  const struct hk_notify_rule *rule;
  const struct hk_notify_message *message;
  uint32_t acknowledged;
  int refused; /* the broker's refusal; 0: none */
  bool connected, left;
  int error; /* of the library */
};

static int send_mqtt_publish(struct mosquitto *m, const struct hk_notify_message *message,
                             const struct hk_notify_message_piece *piece)
{
  const char *at = message->body.data;
  char *topic = strndup(at + piece->topic, piece->topic_length);
  const int status =
      topic ? mosquitto_publish_v5(m, NULL, topic, (int)piece->payload_length, at + piece->payload, QOS, piece->retain, NULL)
            : MOSQ_ERR_NOMEM;
  free(topic);
  return status;
}

static void send_mqtt_on_connect(struct mosquitto *m, void *arg, int reason, int flags, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)flags, (void)properties;
  if (reason != 0) {
    p->refused = reason;
    return;
  }
  p->connected = true;
  for (uint32_t i = 0; i < p->message->n_pieces && p->error == 0; i++)
    p->error = send_mqtt_publish(m, p->message, &p->message->piece[i]);
}

static void send_mqtt_on_publish(struct mosquitto *m, void *arg, int id, int reason, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)m, (void)id, (void)properties;
  p->acknowledged++;
  if (reason >= REFUSED && p->refused == 0)
    p->refused = reason;
}

static void send_mqtt_on_disconnect(struct mosquitto *m, void *arg, int reason, const mosquitto_property *properties)
{
  struct publishing *p = arg;
  (void)m, (void)properties;
  p->left = true;
  if (reason >= REFUSED && p->refused == 0)
    p->refused = reason;
}

static int send_mqtt_make(struct mosquitto **out, struct publishing *p, const char *password)
{
  const struct hk_notify_rule *r = p->rule;
  char id[HK_SECTION_TEXT];
  uint32_t number = 0;
  (void)!getrandom(&number, sizeof number, 0);
  if (r->mqtt.client[0])
    snprintf(id, sizeof id, "%s", r->mqtt.client);
  else
    snprintf(id, sizeof id, "hankeld-%s-%08x", r->name, number);
  const struct hk_mqtt_client wanted = { .id = id,
                                         .clean = true,
                                         .version = r->mqtt.version == HK_MQTT_5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311,
                                         .tls = r->mqtt.address.tls,
                                         .ca = r->tls.ca,
                                         .certificate = r->tls.certificate,
                                         .key = r->tls.key };
  int status = hk_mqtt_client_new(out, &wanted, p);
  if (status != 0)
    return status;
  mosquitto_connect_v5_callback_set(*out, send_mqtt_on_connect);
  mosquitto_publish_v5_callback_set(*out, send_mqtt_on_publish);
  mosquitto_disconnect_v5_callback_set(*out, send_mqtt_on_disconnect);
  if (r->user[0])
    status = mosquitto_username_pw_set(*out, r->user, password);
  return status;
}

static void send_mqtt_say(struct hk_answer *answer, const struct publishing *p, int status, bool late)
{
  const bool v5 = p->rule->mqtt.version == HK_MQTT_5;
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

/* With TLS the library does not report a refused connection: its socket is closed then. */
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

enum hk_sent hk_send_mqtt(const struct hk_notify_rule *r, const char *password, const struct hk_notify_message *message,
                          const atomic_bool *quit, struct hk_answer *answer)
{
  struct publishing p = { .rule = r, .message = message };
  struct mosquitto *m;
  const int64_t until = hk_now() + r->timeout;
  int status = send_mqtt_make(&m, &p, password);
  errno = 0;
  if (status == 0) /* its result is not waited for */
    status = mosquitto_connect_async(m, r->mqtt.address.host, r->mqtt.address.port, KEEPALIVE);
  while (status == 0 && p.error == 0 && p.refused == 0 && !p.left && !(p.connected && p.acknowledged >= message->n_pieces) &&
         hk_now() < until && !(quit && atomic_load(quit))) {
    status = mosquitto_loop(m, TURN_MS, 1);
    if (status == 0 && !p.connected)
      status = look_at_socket(m);
  }
  status = status ? status : p.error;
  const bool done = status == 0 && p.refused == 0 && p.connected && p.acknowledged >= message->n_pieces;
  send_mqtt_say(answer, &p, status, !done && hk_now() >= until);
  if (m && p.connected && !p.left) {
    (void)mosquitto_disconnect_v5(m, 0, NULL);
    (void)mosquitto_loop(m, 0, 1);
  }
  mosquitto_destroy(m);
  return done ? HK_SENT : HK_SENT_LATER;
}
