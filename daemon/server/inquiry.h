/* Inquiry: what is asked over HTTP of one sensor, or over either protocol of many, and what this machine answers to others of its
 * cluster.
 *
 *     hk_inquiry_look, hk_inquiry_list -> (ready is called) -> hk_inquiry_answered -> hk_inquiry_drop
 *
 * A sensor is looked at where it is scored, so that every machine of a cluster shows all of them: by a question to the machine
 * that has its partition. A list is made of the lists of all (fleet_list.h). What others ask is answered from here alone.
 *
 * Thread: one for each inquiry: the web's, the mail's, or a loop's. */
#ifndef HK_INQUIRY_H
#define HK_INQUIRY_H

#include "daemon/base/buffer.h"
#include "daemon/bridge/cluster_mail.h"
#include "daemon/web/web_source.h"
#include "proto/wire/message.h"

struct hk_connection;

/* As in struct hk_web_answers. arg: the server. */
void hk_inquiry_look(void *arg, const char *name, uint32_t scores, void (*ready)(void *arg), void *ready_arg,
                     struct hk_inquiry **out);
const char *hk_inquiry_list(void *arg, const struct hk_web_sensors *asked, void (*ready)(void *arg), void *ready_arg,
                            struct hk_inquiry **out);
unsigned hk_inquiry_answered(struct hk_inquiry *inquiry, struct hk_buffer *out);
void hk_inquiry_drop(struct hk_inquiry *inquiry);

/* SENSORS of the binary protocol, as in struct hk_requests; parked connections are woken. Thread: the connection's. */
struct hk_inquiry *hk_inquiry_begin(struct hk_connection *c, const struct hk_sensors_asked *m);
bool hk_inquiry_listed(struct hk_inquiry *inquiry, struct hk_buffer *json);

/* As in struct hk_mail_answers: a question of another machine. */
void *hk_inquiry_of_other(void *arg, const char *question, size_t size, void (*ready)(void *arg), void *ready_arg);
unsigned hk_inquiry_result(void *job, struct hk_buffer *out);
void hk_inquiry_end(void *job);

#endif
