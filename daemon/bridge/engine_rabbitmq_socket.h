/* The socket to a RabbitMQ broker, with TLS if its address wants that. */
#ifndef HK_ENGINE_RABBITMQ_SOCKET_H
#define HK_ENGINE_RABBITMQ_SOCKET_H

#include "daemon/bridge/engine.h"

#include <amqp.h>

/* Makes an unconnected socket, which is the connection's. NULL, with why. */
amqp_socket_t *hk_rabbitmq_socket(amqp_connection_state_t amqp, const struct hk_cluster_rule *rule,
                                  const struct hk_broker_address *broker, char why[HK_ENGINE_WHY]);

#endif
