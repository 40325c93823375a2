/* See send_stream.h. libcurl only connects; HTTP is not used. */
#include "daemon/notify/send_stream.h"

#include "daemon/base/log.h"
#include "daemon/notify/curl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_MS 250

static int send_stream_on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
  const atomic_bool *quit = arg;
  (void)a, (void)b, (void)c, (void)d;
  return quit && atomic_load_explicit(quit, memory_order_relaxed);
}

void hk_send_trust(void *curl, const struct hk_notify_tls *tls)
{
  CURL *c = curl;
  if (tls->ca[0])
    hk_curl.easy_setopt(c, CURLOPT_CAINFO, tls->ca);
  if (tls->certificate[0]) {
    hk_curl.easy_setopt(c, CURLOPT_SSLCERT, tls->certificate);
    hk_curl.easy_setopt(c, CURLOPT_SSLKEY, tls->key);
  }
}

static void set_options(CURL *c, const struct hk_notify_rule *r, const atomic_bool *quit, char error[CURL_ERROR_SIZE])
{
  static const char tls[] = "tls://";
  char url[HK_SECTION_TEXT + 8];
  const bool secure = strncmp(r->server, tls, sizeof tls - 1) == 0;
  const char *host = strstr(r->server, "://");
  snprintf(url, sizeof url, "http%s://%s", secure ? "s" : "", host ? host + 3 : "");
  hk_curl.easy_setopt(c, CURLOPT_URL, url);
  hk_curl.easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
  hk_curl.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  hk_curl.easy_setopt(c, CURLOPT_NOPROXY, "*");
  hk_curl.easy_setopt(c, CURLOPT_SSL_ENABLE_ALPN, 0L);
  hk_send_trust(c, &r->tls);
  hk_curl.easy_setopt(c, CURLOPT_ERRORBUFFER, error);
  hk_curl.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  hk_curl.easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)(r->timeout / 1000000));
  hk_curl.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  hk_curl.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, send_stream_on_progress);
  hk_curl.easy_setopt(c, CURLOPT_XFERINFODATA, (void *)quit);
}

/* Waits up to TURN_MS for the socket. Returns CURLE_OK, or why not to go on. */
static CURLcode send_stream_await(int fd, short events, int64_t until, const atomic_bool *quit)
{
  struct pollfd what = { .fd = fd, .events = events };
  (void)poll(&what, 1, TURN_MS);
  return send_stream_on_progress((void *)quit, 0, 0, 0, 0) ? CURLE_ABORTED_BY_CALLBACK
         : hk_now() > until                                ? CURLE_OPERATION_TIMEDOUT
                                                           : CURLE_OK;
}

static CURLcode send_all(CURL *c, int fd, const struct hk_buffer *body, int64_t until, const atomic_bool *quit)
{
  CURLcode code = CURLE_OK;
  for (size_t sent = 0, n; code == CURLE_OK && sent < body->size;) {
    code = hk_curl.easy_send(c, body->data + sent, body->size - sent, &n);
    if (code == CURLE_OK)
      sent += n;
    else if (code == CURLE_AGAIN)
      code = send_stream_await(fd, POLLOUT, until, quit);
  }
  return code;
}

/* Ends our half of the connection and waits until the server, which has then read all of it, has ended its own. */
static CURLcode await_end(int fd, int64_t until, const atomic_bool *quit)
{
  char unwanted[512];                                                       /* of TLS: tickets, and the alert that it closes */
  CURLcode code = shutdown(fd, SHUT_WR) == 0 ? CURLE_OK : CURLE_RECV_ERROR; /* it was reset already */
  while (code == CURLE_OK) {
    const ssize_t n = recv(fd, unwanted, sizeof unwanted, MSG_DONTWAIT);
    if (n == 0)
      return CURLE_OK;
    if (n < 0)
      code = errno == EAGAIN || errno == EINTR ? send_stream_await(fd, POLLIN, until, quit) : CURLE_RECV_ERROR;
  }
  return code;
}

/* Sends the body over a connection that stands, and closes it: of TLS libcurl says so to the server, and a duplicate of the
 * socket stays open to see that it was read. */
static CURLcode send_and_close(CURL *c, const struct hk_buffer *body, int64_t until, const atomic_bool *quit, const char **why)
{
  curl_socket_t fd = CURL_SOCKET_BAD;
  CURLcode code = hk_curl.easy_getinfo(c, CURLINFO_ACTIVESOCKET, &fd);
  const int open = code == CURLE_OK ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
  if (code == CURLE_OK)
    code = open >= 0 ? send_all(c, fd, body, until, quit) : CURLE_FAILED_INIT;
  hk_curl.easy_cleanup(c);
  if (code == CURLE_OK) {
    code = await_end(open, until, quit);
    *why = code == CURLE_OPERATION_TIMEDOUT ? "the server did not say that it had read the message: it left the connection open"
           : code == CURLE_RECV_ERROR       ? "the server reset the connection, perhaps before it had read the message"
                                            : NULL;
  }
  if (open >= 0)
    close(open);
  return code;
}

enum hk_sent hk_send_stream(const struct hk_notify_rule *r, const struct hk_notify_message *m, const atomic_bool *quit,
                            struct hk_answer *answer)
{
  char error[CURL_ERROR_SIZE] = "";
  const char *why = NULL;
  CURL *c = hk_curl.easy_init(); /* a handle of its own, so that freeing it closes the connection */
  CURLcode code = CURLE_OUT_OF_MEMORY;
  if (c) {
    set_options(c, r, quit, error);
    code = hk_curl.easy_perform(c);
    if (code == CURLE_OK)
      code = send_and_close(c, &m->body, hk_now() + r->timeout, quit, &why);
    else
      hk_curl.easy_cleanup(c);
  }
  snprintf(answer->text, sizeof answer->text, "%.200s",
           code == CURLE_OK ? "sent, and read by the server; syslog does not answer"
           : why            ? why
           : error[0]       ? error
                            : hk_curl.easy_strerror(code));
  return code == CURLE_OK ? HK_SENT : HK_SENT_LATER;
}
