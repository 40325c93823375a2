#include "daemon/bridge/engine_rabbitmq_socket.h"

#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

/* Requires a valid certificate: the library would compare names only, and no address. */
static bool expect(amqp_socket_t *s, const char *host)
{
  X509_VERIFY_PARAM *p = SSL_CTX_get0_param(amqp_ssl_socket_get_context(s));
  X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  amqp_ssl_socket_set_verify_hostname(s, 0);
  return X509_VERIFY_PARAM_set1_ip_asc(p, host) == 1 || X509_VERIFY_PARAM_set1_host(p, host, 0) == 1;
}

amqp_socket_t *hk_rabbitmq_socket(amqp_connection_state_t amqp, const struct hk_cluster_rule *rule,
                                  const struct hk_broker_address *broker, char why[HK_ENGINE_WHY])
{
  if (!broker->tls)
    return amqp_tcp_socket_new(amqp);
  amqp_socket_t *s = amqp_ssl_socket_new(amqp);
  if (!s)
    return NULL;
  amqp_ssl_socket_set_verify_peer(s, 1);
  if (!expect(s, broker->host)) {
    snprintf(why, HK_ENGINE_WHY, "no memory");
    return NULL;
  }
  const char *ca = rule->ca[0] ? rule->ca : SYSTEM_CA;
  if (amqp_ssl_socket_set_ssl_versions(s, AMQP_TLSv1_2, AMQP_TLSvLATEST) != AMQP_STATUS_OK ||
      amqp_ssl_socket_set_cacert(s, ca) != AMQP_STATUS_OK) {
    snprintf(why, HK_ENGINE_WHY, "ca: %.200s cannot be read, or has no certificates", ca);
    return NULL;
  }
  if (rule->certificate[0] && amqp_ssl_socket_set_key(s, rule->certificate, rule->key) != AMQP_STATUS_OK) {
    snprintf(why, HK_ENGINE_WHY, "certificate or key cannot be read: %.200s", rule->certificate);
    return NULL;
  }
  return s;
}
