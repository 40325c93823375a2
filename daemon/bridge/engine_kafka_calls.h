/* librdkafka's functions, for the engine of Kafka alone. They are loaded by hk_kafka_client_open. */
#ifndef HK_ENGINE_KAFKA_CALLS_H
#define HK_ENGINE_KAFKA_CALLS_H

#include "cpu/library.h"

#include <librdkafka/rdkafka.h>

#define HK_KAFKA_CALLS(_)                                                                                                        \
  _(rd_kafka_, CreateTopics)                                                                                                     \
  _(rd_kafka_, CreateTopics_result_topics)                                                                                       \
  _(rd_kafka_, NewTopic_destroy)                                                                                                 \
  _(rd_kafka_, NewTopic_new)                                                                                                     \
  _(rd_kafka_, NewTopic_set_config)                                                                                              \
  _(rd_kafka_, assignment_lost)                                                                                                  \
  _(rd_kafka_, conf_destroy)                                                                                                     \
  _(rd_kafka_, conf_new)                                                                                                         \
  _(rd_kafka_, conf_set)                                                                                                         \
  _(rd_kafka_, conf_set_error_cb)                                                                                                \
  _(rd_kafka_, conf_set_events)                                                                                                  \
  _(rd_kafka_, conf_set_log_cb)                                                                                                  \
  _(rd_kafka_, conf_set_opaque)                                                                                                  \
  _(rd_kafka_, conf_set_rebalance_cb)                                                                                            \
  _(rd_kafka_, consume_queue)                                                                                                    \
  _(rd_kafka_, consume_start_queue)                                                                                              \
  _(rd_kafka_, consume_stop)                                                                                                     \
  _(rd_kafka_, consumer_close_queue)                                                                                             \
  _(rd_kafka_, consumer_closed)                                                                                                  \
  _(rd_kafka_, consumer_poll)                                                                                                    \
  _(rd_kafka_, destroy_flags)                                                                                                    \
  _(rd_kafka_, err2str)                                                                                                          \
  _(rd_kafka_, error_destroy)                                                                                                    \
  _(rd_kafka_, error_string)                                                                                                     \
  _(rd_kafka_, event_CreateTopics_result)                                                                                        \
  _(rd_kafka_, event_destroy)                                                                                                    \
  _(rd_kafka_, event_error)                                                                                                      \
  _(rd_kafka_, event_error_string)                                                                                               \
  _(rd_kafka_, event_message_next)                                                                                               \
  _(rd_kafka_, event_type)                                                                                                       \
  _(rd_kafka_, incremental_assign)                                                                                               \
  _(rd_kafka_, incremental_unassign)                                                                                             \
  _(rd_kafka_, last_error)                                                                                                       \
  _(rd_kafka_, message_destroy)                                                                                                  \
  _(rd_kafka_, message_errstr)                                                                                                   \
  _(rd_kafka_, message_timestamp)                                                                                                \
  _(rd_kafka_, metadata)                                                                                                         \
  _(rd_kafka_, metadata_destroy)                                                                                                 \
  _(rd_kafka_, new)                                                                                                              \
  _(rd_kafka_, pause_partitions)                                                                                                 \
  _(rd_kafka_, poll_set_consumer)                                                                                                \
  _(rd_kafka_, produce)                                                                                                          \
  _(rd_kafka_, purge)                                                                                                            \
  _(rd_kafka_, queue_destroy)                                                                                                    \
  _(rd_kafka_, queue_get_consumer)                                                                                               \
  _(rd_kafka_, queue_get_main)                                                                                                   \
  _(rd_kafka_, queue_io_event_enable)                                                                                            \
  _(rd_kafka_, queue_new)                                                                                                        \
  _(rd_kafka_, queue_poll)                                                                                                       \
  _(rd_kafka_, subscribe)                                                                                                        \
  _(rd_kafka_, topic_destroy)                                                                                                    \
  _(rd_kafka_, topic_new)                                                                                                        \
  _(rd_kafka_, topic_partition_list_add)                                                                                         \
  _(rd_kafka_, topic_partition_list_copy)                                                                                        \
  _(rd_kafka_, topic_partition_list_destroy)                                                                                     \
  _(rd_kafka_, topic_partition_list_new)                                                                                         \
  _(rd_kafka_, topic_result_error)                                                                                               \
  _(rd_kafka_, topic_result_error_string)

struct hk_kafka {
  HK_KAFKA_CALLS(HK_LIBRARY_CALL)
};
extern struct hk_kafka hk_kafka;

#endif
