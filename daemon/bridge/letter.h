/* Letter: what machines of a cluster send to each other's mailboxes (engine.h): a line of text, and a body.
 *
 *     notice 1 MACHINE                  the body: what the machine has (JSON); empty: it ends
 *     question 1 ID MACHINE             the body: the question (JSON), of that machine
 *     answer 1 ID STATUS                the body: the answer; STATUS as of HTTP
 *
 * 1 is the version: letters of another one are not read. What is new in a version goes into the body, where older machines
 * ignore it: so a later version is needed only if they must not read it. Thread: any. */
#ifndef HK_LETTER_H
#define HK_LETTER_H

#include "daemon/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_LETTER_VERSION 1

enum hk_letter_kind { HK_LETTER_NOTICE, HK_LETTER_QUESTION, HK_LETTER_ANSWER };

struct hk_letter {
  enum hk_letter_kind kind;
  uint64_t id;       /* of a question, and its answer */
  uint32_t status;   /* of an answer, 100..599 */
  char machine[256]; /* who wrote a notice, or asks: HOST:PORT, printable ASCII without blanks */
  const char *body;
  size_t size;
};

/* Reads a letter; its body lies in data. False: it is none, or of another version: *version, if it is one, else 0. */
bool hk_letter_read(const void *data, size_t size, struct hk_letter *out, unsigned *version);
/* Appends the line of a letter, after which its body is to be appended. */
void hk_letter_begin(struct hk_buffer *out, const struct hk_letter *letter);

#endif
