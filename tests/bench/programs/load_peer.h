/* Shared by the load generator and the subscriber: functions that exchange frames with a daemon, wait for each reply, and
 * end the program with a message after any error. Thread: one a peer. */
#ifndef LOAD_PEER_H
#define LOAD_PEER_H

#include "proto/wire/message.h"

#include <stdint.h>
#include <stdnoreturn.h>

#define NAME_DIGITS 9u /* sensor 17 of prefix "s" is s000000017 */

struct peer {
  int fd;
  struct hk_inbox in;
  uint64_t feed; /* number of its UDP feed */
};

noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *need(void *memory); /* ends the program if there is none */

int64_t now_wall(void);      /* ns, CLOCK_REALTIME: what points' times are in */
int64_t now_monotonic(void); /* ns */

/* A socket that is connected to a port of 127.0.0.1. type: SOCK_STREAM or SOCK_DGRAM. */
int dial(uint16_t port, int type);
/* Sends all bytes, and waits where it must; the socket may be non-blocking. */
void send_all(int fd, const void *data, size_t size);
/* Raises the limit of descriptors as far as the system allows. */
void raise_descriptors(void);

/* Connects and is greeted. */
void peer_open(struct peer *p, uint16_t port);
/* Waits for the next frame. Returns a view into the inbox that is valid until the next call. An ERROR frame ends the program. */
void peer_receive(struct peer *p, struct hk_frame *f);
/* The next frame that is of this type; others before it are dropped. */
void peer_await(struct peer *p, uint8_t type, struct hk_frame *f);
/* Registers sensors first .. first + n - 1 of a prefix; their handles go to handles[0 .. n - 1]. */
void peer_register(struct peer *p, const char *prefix, uint32_t first, uint32_t n, uint32_t *handles);
/* Ends the program with the message of an ERROR frame. */
noreturn void peer_error(const struct hk_frame *f);

void name_of(const char *prefix, uint32_t sensor, char *name); /* with 0 at the end */

/* Options: `--name value` pairs. */
struct setting {
  const char *name;
  enum { SETTING_NUMBER, SETTING_REAL, SETTING_TEXT } kind;
  void *value; /* int64_t, double, const char * */
};
void parse_settings(int argc, char **argv, const struct setting *settings);

#endif
