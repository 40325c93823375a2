#include "daemon/base/mqtt_client.h"

#include <pthread.h>

/* The library demands a file or a folder, also where it is to take what OpenSSL trusts by itself. */
#define FOLDER "/etc/ssl/certs"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int begun; /* what the library said, once */

static void mqtt_client_begin(void)
{
  begun = mosquitto_lib_init();
}

static const char *path(const char *text)
{
  return text[0] ? text : NULL;
}

int hk_mqtt_client_new(struct mosquitto **out, const struct hk_mqtt_client *wanted, void *arg)
{
  *out = NULL;
  if (pthread_once(&once, mqtt_client_begin) != 0 || begun != MOSQ_ERR_SUCCESS)
    return MOSQ_ERR_NOMEM;
  struct mosquitto *m = mosquitto_new(wanted->id, wanted->clean, arg);
  if (!m)
    return MOSQ_ERR_NOMEM;
  int rc = mosquitto_int_option(m, MOSQ_OPT_PROTOCOL_VERSION, wanted->version);
  if (rc == MOSQ_ERR_SUCCESS)
    rc = mosquitto_int_option(m, MOSQ_OPT_TCP_NODELAY, 1);
  if (rc == MOSQ_ERR_SUCCESS && wanted->tls && !wanted->ca[0])
    rc = mosquitto_int_option(m, MOSQ_OPT_TLS_USE_OS_CERTS, 1);
  if (rc == MOSQ_ERR_SUCCESS && wanted->tls)
    rc =
        mosquitto_tls_set(m, path(wanted->ca), wanted->ca[0] ? NULL : FOLDER, path(wanted->certificate), path(wanted->key), NULL);
  if (rc == MOSQ_ERR_SUCCESS)
    *out = m;
  else
    mosquitto_destroy(m);
  return rc;
}
