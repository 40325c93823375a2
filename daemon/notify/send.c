#include "daemon/notify/send.h"

#include "cpu/sonames.h"
#include "daemon/notify/curl.h"
#include "daemon/notify/send_mqtt.h"
#include "daemon/notify/send_stream.h"
#include "proto/wire/secret_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECRET_MOST 4096      /* bytes */
#define RETRY_AFTER_MOST 3600 /* s */

struct hk_sender {
  CURL *curl;
  const atomic_bool *quit;
  const struct hk_buffer *body; /* the message that is being sent by SMTP */
  size_t sent;
  struct hk_buffer keyed;     /* the body that is being posted, with the secret */
  char heard[HK_ANSWER_MOST]; /* the beginning of the answer */
  size_t heard_size;
};

struct hk_curl hk_curl;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void begin_library(void)
{
  (void)hk_curl.global_init(CURL_GLOBAL_DEFAULT);
}

int hk_sender_new(struct hk_sender **out, const atomic_bool *quit)
{
  static struct hk_library curl_library = HK_LIBRARY(HK_SONAME_CURL, hk_curl, HK_CURL_CALLS);
  const int status = hk_library_load(&curl_library, NULL, 0);
  if (status != 0)
    return status;
  struct hk_sender *s = calloc(1, sizeof *s);
  (void)pthread_once(&once, begin_library);
  if (s && !(s->curl = hk_curl.easy_init())) {
    free(s);
    s = NULL;
  }
  if (!s)
    return -ENOMEM;
  s->quit = quit;
  *out = s;
  return 0;
}

void hk_sender_free(struct hk_sender *s)
{
  if (!s)
    return;
  hk_curl.easy_cleanup(s->curl);
  free(s);
}

static size_t on_answer(char *data, size_t one, size_t n, void *arg)
{
  struct hk_sender *s = arg;
  const size_t room = sizeof s->heard - 1 - s->heard_size, taken = one * n < room ? one * n : room;
  memcpy(s->heard + s->heard_size, data, taken);
  s->heard_size += taken;
  return one * n;
}

static size_t on_more(char *data, size_t one, size_t n, void *arg)
{
  struct hk_sender *s = arg;
  const size_t left = s->body->size - s->sent, taken = one * n < left ? one * n : left;
  memcpy(data, s->body->data + s->sent, taken);
  s->sent += taken;
  return taken;
}

static int send_on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
  const struct hk_sender *s = arg;
  (void)a, (void)b, (void)c, (void)d;
  return s->quit && atomic_load_explicit(s->quit, memory_order_relaxed);
}

/* One line that a terminal and a log can show. */
static void send_make_line(char *text)
{
  for (char *p = text; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
}

/* The first line of the rule's secret; *data is the caller's. False: it cannot be read. */
static bool read_secret(const struct hk_notify_rule *r, char **data, size_t *size, struct hk_answer *answer)
{
  char why[HK_SECRET_WHY];
  *data = NULL;
  *size = 0;
  if (!r->secret[0])
    return true;
  if (hk_secret_read(r->secret, SECRET_MOST, HK_SECRET_FILE, data, size, why) != 0) {
    snprintf(answer->text, sizeof answer->text, "secret_file %.128s: %s", r->secret, why);
    return false;
  }
  (*data)[strcspn(*data, "\r\n")] = 0;
  return true;
}

static struct curl_slist *send_add(struct curl_slist *list, const char *line, bool *good)
{
  struct curl_slist *longer = *good ? hk_curl.slist_append(list, line) : NULL;
  *good &= longer != NULL;
  return longer ? longer : list;
}

/* The body with PagerDuty's key of the service. */
static void send_put_key(struct hk_sender *s, const struct hk_notify_message *m, const char *secret)
{
  hk_buffer_print(&s->keyed, "{\"routing_key\":");
  hk_json_string(&s->keyed, secret, strlen(secret));
  hk_buffer_put(&s->keyed, ",", 1);
  hk_buffer_put(&s->keyed, m->body.data + 1, m->body.size - 1); /* its own brace is there already */
}

static struct curl_slist *http_options(CURL *c, const struct hk_notify_rule *r, const struct hk_notify_message *m,
                                       struct hk_sender *s, const char *secret, bool *good)
{
  char line[SECRET_MOST + 64];
  const bool url_is_secret = hk_notify_secret_url(r) && secret, in_body = r->type == HK_NOTIFY_PAGERDUTY && secret;
  snprintf(line, sizeof line, "Content-Type: %s", m->content_type);
  struct curl_slist *headers = send_add(NULL, line, good);
  if (in_body)
    send_put_key(s, m, secret);
  *good &= !s->keyed.failed;
  const struct hk_buffer *body = in_body ? &s->keyed : &m->body;
  snprintf(line, sizeof line, "Idempotency-Key: %s", m->key);
  headers = send_add(headers, line, good);
  headers = send_add(headers, "Expect:", good);
  if (secret && !url_is_secret && !in_body) {
    snprintf(line, sizeof line, "Authorization: Bearer %s", secret);
    headers = send_add(headers, line, good);
  }
  hk_curl.easy_setopt(c, CURLOPT_URL, url_is_secret ? secret : r->url);
  hk_curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  hk_curl.easy_setopt(c, CURLOPT_POSTFIELDS, body->data);
  hk_curl.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size);
  hk_curl.easy_setopt(c, CURLOPT_HTTPHEADER, headers);
  return headers;
}

static struct curl_slist *mail_options(CURL *c, const struct hk_notify_rule *r, struct hk_sender *s, const char *secret,
                                       bool *good)
{
  char all[HK_SECTION_TEXT], *rest;
  struct curl_slist *to = NULL;
  snprintf(all, sizeof all, "%s", r->to);
  for (char *one = strtok_r(all, ", ", &rest); one; one = strtok_r(NULL, ", ", &rest))
    to = send_add(to, one, good);
  hk_curl.easy_setopt(c, CURLOPT_URL, r->server);
  hk_curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  hk_curl.easy_setopt(c, CURLOPT_MAIL_FROM, r->from);
  hk_curl.easy_setopt(c, CURLOPT_MAIL_RCPT, to);
  hk_curl.easy_setopt(c, CURLOPT_UPLOAD, 1L);
  hk_curl.easy_setopt(c, CURLOPT_READFUNCTION, on_more);
  hk_curl.easy_setopt(c, CURLOPT_READDATA, s);
  hk_curl.easy_setopt(c, CURLOPT_USE_SSL, (long)(r->user[0] ? CURLUSESSL_ALL : CURLUSESSL_TRY)); /* no password unencrypted */
  if (r->user[0]) {
    hk_curl.easy_setopt(c, CURLOPT_USERNAME, r->user);
    hk_curl.easy_setopt(c, CURLOPT_PASSWORD, secret);
  }
  return to;
}

/* The meaning of an answer for the caller. */
static enum hk_sent send_judge(struct hk_sender *s, bool mail, CURLcode code, const char *error, struct hk_answer *a)
{
  long number = 0;
  curl_off_t wait = 0;
  hk_curl.easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &number);
  s->heard[s->heard_size] = 0;
  if (code != CURLE_OK) {
    snprintf(a->text, sizeof a->text, "%.200s", error[0] ? error : hk_curl.easy_strerror(code));
    send_make_line(a->text);
    return mail && number >= 550 && number < 560 ? HK_SENT_NEVER : HK_SENT_LATER;
  }
  snprintf(a->text, sizeof a->text, "%ld%s%.200s", number, s->heard_size && !mail ? ": " : "", mail ? "" : s->heard);
  send_make_line(a->text);
  if (mail || (number >= 200 && number < 300))
    return HK_SENT;
  if (hk_curl.easy_getinfo(s->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    a->retry_after = (wait < RETRY_AFTER_MOST ? wait : RETRY_AFTER_MOST) * 1000000000ll;
  if (number == 408 || number == 425 || number == 429 || number >= 500 || number < 300)
    return HK_SENT_LATER;
  return HK_SENT_NEVER; /* redirections are not followed: the token is for the URL that was configured */
}

/* By libcurl. */
static enum hk_sent send_post(struct hk_sender *s, const struct hk_notify_rule *r, const struct hk_notify_message *m,
                              const char *secret, struct hk_answer *answer)
{
  char error[CURL_ERROR_SIZE] = "";
  bool good = true;
  const bool mail = r->type == HK_NOTIFY_EMAIL;
  CURL *c = s->curl;
  s->body = &m->body;
  s->sent = s->heard_size = 0;
  hk_curl.easy_reset(c);
  struct curl_slist *list = mail ? mail_options(c, r, s, secret, &good) : http_options(c, r, m, s, secret, &good);
  hk_send_trust(c, &r->tls);
  hk_curl.easy_setopt(c, CURLOPT_ERRORBUFFER, error);
  hk_curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  hk_curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(r->timeout / 1000000));
  hk_curl.easy_setopt(c, CURLOPT_USERAGENT, "hankeld/" HANKELD_VERSION);
  hk_curl.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer);
  hk_curl.easy_setopt(c, CURLOPT_WRITEDATA, s);
  hk_curl.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  hk_curl.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, send_on_progress);
  hk_curl.easy_setopt(c, CURLOPT_XFERINFODATA, s);
  const CURLcode code = good ? hk_curl.easy_perform(c) : CURLE_OUT_OF_MEMORY;
  const enum hk_sent sent = send_judge(s, mail, code, error, answer);
  hk_curl.easy_reset(c); /* so that the handle no longer refers to the secret and the lists */
  hk_curl.slist_free_all(list);
  if (s->keyed.data)
    explicit_bzero(s->keyed.data, s->keyed.size);
  hk_buffer_free(&s->keyed);
  return sent;
}

enum hk_sent hk_sender_send(struct hk_sender *s, const struct hk_notify_rule *r, const struct hk_notify_message *m,
                            struct hk_answer *answer)
{
  char *secret;
  size_t size;
  *answer = (struct hk_answer){ 0 };
  if (r->type == HK_NOTIFY_SYSLOG)
    return hk_send_stream(r, m, s->quit, answer);
  if (!read_secret(r, &secret, &size, answer))
    return HK_SENT_LATER;
  const enum hk_sent sent =
      r->type == HK_NOTIFY_MQTT ? hk_send_mqtt(r, secret, m, s->quit, answer) : send_post(s, r, m, secret, answer);
  send_make_line(answer->text);
  if (secret)
    hk_secret_free(secret, size);
  return sent;
}
