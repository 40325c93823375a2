/* See send_stream.h. libcurl only connects; HTTP is not used. */
#include "daemon/notify/send_stream.h"

#include "daemon/base/log.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define TURN_MS 250

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
  const atomic_bool *quit = arg;
  (void)a, (void)b, (void)c, (void)d;
  return quit && atomic_load_explicit(quit, memory_order_relaxed);
}

void hk_send_trust(void *curl, const struct hk_notify_tls *tls)
{
  CURL *c = curl;
  if (tls->ca[0])
    curl_easy_setopt(c, CURLOPT_CAINFO, tls->ca);
  if (tls->certificate[0]) {
    curl_easy_setopt(c, CURLOPT_SSLCERT, tls->certificate);
    curl_easy_setopt(c, CURLOPT_SSLKEY, tls->key);
  }
}

static void set_options(CURL *c, const struct hk_notify_rule *r, const atomic_bool *quit, char error[CURL_ERROR_SIZE])
{
  static const char tls[] = "tls://";
  char url[HK_SECTION_TEXT + 8];
  const bool secure = strncmp(r->server, tls, sizeof tls - 1) == 0;
  const char *host = strstr(r->server, "://");
  snprintf(url, sizeof url, "http%s://%s", secure ? "s" : "", host ? host + 3 : "");
  curl_easy_setopt(c, CURLOPT_URL, url);
  curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(c, CURLOPT_SSL_ENABLE_ALPN, 0L);
  hk_send_trust(c, &r->tls);
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(r->timeout / 1000000));
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, (void *)quit);
}

static CURLcode send_all(CURL *c, const struct hk_buffer *body, int64_t until, const atomic_bool *quit)
{
  curl_socket_t fd = CURL_SOCKET_BAD;
  CURLcode code = curl_easy_getinfo(c, CURLINFO_ACTIVESOCKET, &fd);
  for (size_t sent = 0, n; code == CURLE_OK && sent < body->size;) {
    code = curl_easy_send(c, body->data + sent, body->size - sent, &n);
    if (code == CURLE_OK) {
      sent += n;
    } else if (code == CURLE_AGAIN) {
      struct pollfd room = { .fd = fd, .events = POLLOUT };
      (void)poll(&room, 1, TURN_MS);
      code = on_progress((void *)quit, 0, 0, 0, 0) ? CURLE_ABORTED_BY_CALLBACK
             : hk_now() > until                    ? CURLE_OPERATION_TIMEDOUT
                                                   : CURLE_OK;
    }
  }
  return code;
}

enum hk_sent hk_send_stream(const struct hk_notify_rule *r, const struct hk_message *m, const atomic_bool *quit,
                            struct hk_answer *answer)
{
  char error[CURL_ERROR_SIZE] = "";
  CURL *c = curl_easy_init(); /* a handle of its own, so that freeing it closes the connection */
  CURLcode code = CURLE_OUT_OF_MEMORY;
  if (c) {
    set_options(c, r, quit, error);
    code = curl_easy_perform(c);
    if (code == CURLE_OK)
      code = send_all(c, &m->body, hk_now() + r->timeout, quit);
    curl_easy_cleanup(c);
  }
  snprintf(answer->text, sizeof answer->text, "%.200s",
           code == CURLE_OK ? "sent; syslog does not answer"
           : error[0]       ? error
                            : curl_easy_strerror(code));
  return code == CURLE_OK ? HK_SENT : HK_SENT_LATER;
}
