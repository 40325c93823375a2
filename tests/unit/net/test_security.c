/* Rules, tokens, limits by address, TLS without a socket, the keyed checksum of datagrams. */
#include "daemon/config/listener_rules.h"
#include "daemon/config/tokens.h"
#include "daemon/net/address_limits.h"
#include "daemon/net/tls.h"
#include "proto/client/client_tls.h"
#include "proto/wire/mac.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND 1000000000ll

static void scopes_are_read_and_written(void **state)
{
  static const struct {
    const char *text;
    int status;
    uint32_t scopes;
  } cases[] = {
    { "feed", 0, HK_SCOPE_FEED },
    { "subscribe,feed", 0, HK_SCOPE_FEED | HK_SCOPE_SUBSCRIBE },
    { "feed, subscribe, admin", 0, HK_SCOPE_ALL },
    { "", -22, 0 },
    { "feed,", -22, 0 },
    { ",feed", -22, 0 },
    { "feeds", -22, 0 },
    { "fee", -22, 0 },
    { "feed subscribe", -22, 0 },
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t scopes;
    char text[HK_SCOPES_TEXT];
    assert_int_equal(hk_scopes_parse(cases[i].text, &scopes), cases[i].status);
    if (cases[i].status != 0)
      continue;
    assert_int_equal(scopes, cases[i].scopes);
    hk_scopes_format(scopes, text);
    assert_int_equal(hk_scopes_parse(text, &scopes), 0);
    assert_int_equal(scopes, cases[i].scopes);
  }
}

static int read_tokens(struct hk_tokens **out, const char *text, char error[256])
{
  FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
  assert_non_null(file);
  const int status = hk_tokens_read(out, file, "tokens", error, 256);
  fclose(file);
  return status;
}

static void tokens_are_found_by_all_of_their_bytes(void **state)
{
  char token[2][HK_TOKEN_LENGTH + 1], line[2][256], text[1024], error[256];
  struct hk_tokens *t;
  (void)state;
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, NULL, token[0], line[0], sizeof line[0]), 0);
  assert_int_equal(hk_token_make("b", HK_SCOPE_ALL, NULL, token[1], line[1], sizeof line[1]), 0);
  assert_string_not_equal(token[0], token[1]);
  assert_int_equal(strlen(token[0]), HK_TOKEN_LENGTH);
  assert_null(strstr(line[0], token[0]));
  snprintf(text, sizeof text, "# a comment\n\n  %s\r\n%s\nname feed,admin certificate", line[0], line[1]);
  assert_int_equal(read_tokens(&t, text, error), 0);
  assert_int_equal(hk_tokens_count(t), 3);
  const struct hk_token *b = hk_tokens_find(t, token[1], HK_TOKEN_LENGTH);
  assert_non_null(b);
  assert_string_equal(b->name, "b");
  assert_int_equal(b->scopes, HK_SCOPE_ALL);
  assert_ptr_equal(hk_tokens_again(t, b), b);
  for (size_t i = 0; i < HK_TOKEN_LENGTH; i++) { /* every bit counts, and so does the length */
    char other[HK_TOKEN_LENGTH + 1];
    memcpy(other, token[1], sizeof other);
    other[i] ^= 1;
    assert_null(hk_tokens_find(t, other, HK_TOKEN_LENGTH));
    assert_null(hk_tokens_find(t, token[1], i));
  }
  static const uint8_t zeros[HK_TOKEN_HASH];
  assert_null(hk_tokens_find(t, (const char *)zeros, sizeof zeros));
  const struct hk_token *certificate = hk_tokens_certificate(t, "name");
  assert_non_null(certificate);
  assert_int_equal(certificate->scopes, HK_SCOPE_FEED | HK_SCOPE_ADMIN);
  assert_ptr_equal(hk_tokens_again(t, certificate), certificate);
  assert_null(hk_tokens_certificate(t, "a")); /* the name of a token does not apply to a certificate */
  hk_tokens_free(t);
}

static void a_nul_byte_hides_no_token(void **state)
{
  (void)state;
  for (size_t at = 0; at < 16; at++) {
    char text[] = "#\na feed certificate\nb feed certificate\n", error[256] = "";
    struct hk_tokens *t = NULL;
    text[2 + at] = 0;
    FILE *file = fmemopen(text, sizeof text - 1, "r");
    assert_non_null(file);
    assert_int_equal(hk_tokens_read(&t, file, "tokens", error, sizeof error), -EINVAL);
    fclose(file);
    assert_non_null(strstr(error, "tokens:2: a NUL byte"));
  }
}

static void a_token_file_is_good_or_refused(void **state)
{
#define HEX "0123456789abcdef0123456789abcdef0123456789ABCDEF0123456789abcdef"
  static const char *const good[] = {
    "", "#", "\n\n", ("a feed sha256:" HEX), "a\tfeed\tcertificate\n", "a feed certificate feeds=*\n"
  };
  static const char *const wrong[][2] = {
    { "a feed", "tokens:1: a line is" },
    { "a feed sha256:" HEX " more", "tokens:1: a line is" },
    { "a feed sha256:" HEX " feeds=x more", "tokens:1: a line is" },
    { "a feed sha256:" HEX " feeds=", "tokens:1: feeds=" },
    { "\na fed sha256:" HEX, "tokens:2: scopes" },
    { "a feed sha256:0" HEX, "tokens:1: after the scopes" },
    { "a feed sha256:g123456789abcdef0123456789abcdef0123456789ABCDEF0123456789abcdef", "after the scopes" },
    { "a feed md5:" HEX, "after the scopes" },
    { "a\x01 feed certificate", "tokens:1: a name" },
    { "a feed sha256:" HEX "\nb admin sha256:" HEX, "tokens:2: the same" },
    { "a feed certificate\na admin certificate", "tokens:2: the same" },
  };
  struct hk_tokens *t;
  char error[256], name[100] = "", text[1024];
  (void)state;
  for (size_t i = 1; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(read_tokens(&t, good[i], error), 0);
    hk_tokens_free(t);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(read_tokens(&t, wrong[i][0], error), -22);
    if (!strstr(error, wrong[i][1]))
      fail_msg("`%s`: `%s` is not told of, but `%s`", wrong[i][0], wrong[i][1], error);
  }
  memset(name, 'n', HK_TOKEN_NAME_MAX);
  char glob[HK_TOKEN_FEEDS_MAX + 2] = "";
  memset(glob, 'g', HK_TOKEN_FEEDS_MAX);
  snprintf(text, sizeof text, "a feed certificate feeds=%s", glob);
  assert_int_equal(read_tokens(&t, text, error), 0);
  hk_tokens_free(t);
  glob[HK_TOKEN_FEEDS_MAX] = 'g';
  snprintf(text, sizeof text, "a feed certificate feeds=%s", glob);
  assert_int_equal(read_tokens(&t, text, error), -22);
  snprintf(text, sizeof text, "%s feed certificate", name);
  assert_int_equal(read_tokens(&t, text, error), -22);
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  assert_int_equal(read_tokens(&t, text, error), -22);
  assert_non_null(strstr(error, "too long"));
  static char many[(HK_TOKENS_MAX + 2) * 24] = "# no token\n";
  size_t end = strlen(many);
  for (int i = 0; i < HK_TOKENS_MAX; i++)
    end += (size_t)snprintf(many + end, sizeof many - end, "n%d feed certificate\n", i);
  assert_int_equal(read_tokens(&t, many, error), 0);
  assert_int_equal(hk_tokens_count(t), HK_TOKENS_MAX);
  hk_tokens_free(t);
  snprintf(many + end, sizeof many - end, "n feed certificate\n");
  assert_int_equal(read_tokens(&t, many, error), -22);
  assert_string_equal(error, "tokens:4098: more than 4096 tokens and certificates");
}

static void feeds_are_their_owners(void **state)
{
  static const char text[] = "pump-7 feed certificate feeds=pump-7/*\n"
                             "pumps feed certificate feeds=pump-?/*\n"
                             "other feed certificate\n";
  static const struct {
    const char *name, *feed;
    bool may;
  } cases[] = {
    { "pump-7", "pump-7/a", true },  { "pump-7", "pump-7/", true },  { "pump-7", "pump-7", false },
    { "pump-7", "pump-8/a", false }, { "pump-7", "gateway", false }, { "pumps", "pump-7/a", true },
    { "pumps", "pump-77/a", false }, { "other", "gateway", true },   { "other", "pump-7/a", false },
    { "other", "pump-8/a", false },  { "other", "pump-77/a", true }, { "other", "pump-7", true },
  };
  struct hk_tokens *t;
  char error[256], token[HK_TOKEN_LENGTH + 1], line[512], one[256] = "";
  (void)state;
  assert_int_equal(read_tokens(&t, text, error), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(hk_tokens_may_feed(t, hk_tokens_certificate(t, cases[i].name), cases[i].feed, strlen(cases[i].feed)),
                     cases[i].may);
  hk_tokens_free(t);
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, "a/*", token, line, sizeof line), 0);
  assert_int_equal(read_tokens(&t, line, error), 0);
  const struct hk_token *a = hk_tokens_find(t, token, HK_TOKEN_LENGTH);
  assert_true(hk_tokens_may_feed(t, a, "a/b", 3));
  assert_false(hk_tokens_may_feed(t, a, "b/b", 3));
  hk_tokens_free(t);
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, "a b", token, line, sizeof line), -22);
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, "", token, line, sizeof line), -22);
  memset(one, 'g', HK_TOKEN_FEEDS_MAX + 1);
  assert_int_equal(hk_token_make("a", HK_SCOPE_FEED, one, token, line, sizeof line), -22);
}

static struct sockaddr_storage address(const char *text)
{
  struct sockaddr_storage a = { 0 };
  struct sockaddr_in *v4 = (struct sockaddr_in *)&a;
  struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&a;
  a.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
  assert_int_equal(inet_pton(a.ss_family, text, a.ss_family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr), 1);
  return a;
}

static enum hk_address_limits_verdict enter(struct hk_address_limits *l, const struct hk_address_limits_most *most,
                                            const char *from, bool newcomer, int64_t now, struct hk_address_limits_place **out)
{
  const struct sockaddr_storage a = address(from);
  return hk_address_limits_enter(l, most, &a, newcomer, now, out);
}

static void one_address_has_what_it_is_given(void **state)
{
  const struct hk_address_limits_most most = { .connections = 4, .newcomers = 2, .failures = 3 };
  struct hk_address_limits_place *p[4], *other;
  struct hk_address_limits *l;
  uint32_t newcomers, turned_away;
  (void)state;
  assert_int_equal(hk_address_limits_new(&l, 16), 0);
  assert_int_equal(enter(l, &most, "192.0.2.1", true, 0, &p[0]), HK_ADDRESS_LIMITS_FINE);
  assert_int_equal(enter(l, &most, "192.0.2.1", true, 0, &p[1]), HK_ADDRESS_LIMITS_FINE);
  assert_int_equal(enter(l, &most, "192.0.2.1", true, 0, &p[2]), HK_ADDRESS_LIMITS_NEWCOMERS);
  assert_int_equal(enter(l, &most, "::ffff:192.0.2.1", true, 0, &p[2]), HK_ADDRESS_LIMITS_NEWCOMERS); /* the same one */
  assert_int_equal(enter(l, &most, "192.0.2.2", true, 0, &other), HK_ADDRESS_LIMITS_FINE);
  hk_address_limits_admit(l, p[0]);
  assert_int_equal(enter(l, &most, "192.0.2.1", true, 0, &p[2]), HK_ADDRESS_LIMITS_FINE);
  assert_int_equal(enter(l, &most, "192.0.2.1", false, 0, &p[3]), HK_ADDRESS_LIMITS_FINE);
  assert_int_equal(enter(l, &most, "192.0.2.1", false, 0, &other), HK_ADDRESS_LIMITS_CONNECTIONS);
  hk_address_limits_survey(l, &most, 0, &newcomers, &turned_away);
  assert_int_equal(newcomers, 3);
  hk_address_limits_leave(l, p[3], false);
  hk_address_limits_leave(l, p[2], true);
  assert_int_equal(enter(l, &most, "192.0.2.1", true, 0, &p[2]), HK_ADDRESS_LIMITS_FINE);
  hk_address_limits_leave(l, NULL, true);
  hk_address_limits_free(l);
}

static void failures_are_forgotten_after_a_minute(void **state)
{
  const struct hk_address_limits_most most = { .failures = 3 };
  struct hk_address_limits_place *p, *q;
  struct hk_address_limits *l;
  uint32_t newcomers, turned_away;
  (void)state;
  assert_int_equal(hk_address_limits_new(&l, 16), 0);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(enter(l, &most, "2001:db8::1", true, SECOND, &p), HK_ADDRESS_LIMITS_FINE);
    assert_int_equal(hk_address_limits_fail(l, &most, p, (1 + i) * SECOND), i == 2);
    hk_address_limits_leave(l, p, true);
  }
  assert_int_equal(enter(l, &most, "2001:db8::1", true, 5 * SECOND, &p), HK_ADDRESS_LIMITS_FAILURES);
  assert_int_equal(enter(l, &most, "2001:db8::ffff:0:0:1", true, 5 * SECOND, &p), HK_ADDRESS_LIMITS_FAILURES); /* the same /64 */
  assert_int_equal(enter(l, &most, "2001:db8:0:1::1", true, 5 * SECOND, &q), HK_ADDRESS_LIMITS_FINE);
  assert_int_equal(enter(l, &most, "2001:db8::1", false, 5 * SECOND, &p), HK_ADDRESS_LIMITS_FINE); /* where nothing is demanded */
  hk_address_limits_survey(l, &most, 5 * SECOND, &newcomers, &turned_away);
  assert_int_equal(turned_away, 1);
  assert_int_equal(enter(l, &most, "2001:db8::1", true, 62 * SECOND, &p), HK_ADDRESS_LIMITS_FINE);
  hk_address_limits_free(l);
}

/* Addresses that fail and disconnect cannot make the table grow, nor evict those that have connections. */
static void the_table_stays_as_it_is(void **state)
{
  const struct hk_address_limits_most most = { .newcomers = 2, .failures = 1 };
  struct hk_address_limits_place *kept[16], *p;
  struct hk_address_limits *l;
  char text[32];
  (void)state;
  assert_int_equal(hk_address_limits_new(&l, 16), 0);
  for (int i = 0; i < 15; i++) {
    snprintf(text, sizeof text, "203.0.113.%d", i);
    assert_int_equal(enter(l, &most, text, true, 0, &kept[i]), HK_ADDRESS_LIMITS_FINE);
  }
  for (int i = 0; i < 50000; i++) {
    snprintf(text, sizeof text, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
    assert_int_equal(enter(l, &most, text, true, i, &p), HK_ADDRESS_LIMITS_FINE);
    hk_address_limits_fail(l, &most, p, i);
    hk_address_limits_leave(l, p, true);
    assert_int_equal(enter(l, &most, text, true, i, &p), HK_ADDRESS_LIMITS_FAILURES); /* not forgotten at once */
  }
  for (int i = 0; i < 15; i++) {
    snprintf(text, sizeof text, "203.0.113.%d", i);
    assert_int_equal(enter(l, &most, text, true, 0, &p), HK_ADDRESS_LIMITS_FINE);
    assert_ptr_equal(p, kept[i]);
  }
  hk_address_limits_free(l);
}

/* RFC 4231, test case 1 has a key of 20 bytes; with zeros appended it is the same key, because a block is 64. */
static void a_keyed_checksum_is_that_of_the_standard(void **state)
{
  static const uint8_t expected[HK_MAC_BYTES] = { 0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53,
                                                  0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b };
  uint8_t key[HK_MAC_KEY] = { 0 }, made[HK_MAC_BYTES];
  (void)state;
  memset(key, 0x0b, 20);
  struct hk_mac *m = hk_mac_new(key);
  assert_non_null(m);
  for (int i = 0; i < 3; i++) { /* each starts over */
    assert_int_equal(hk_mac_make(m, "Hi There", 8, made), 0);
    assert_memory_equal(made, expected, sizeof made);
  }
  assert_true(hk_mac_good(m, "Hi There", 8, made));
  assert_false(hk_mac_good(m, "Hi there", 8, made));
  assert_false(hk_mac_good(m, "Hi There", 7, made));
  for (unsigned bit = 0; bit < 8 * HK_MAC_BYTES; bit++) {
    memcpy(made, expected, sizeof made);
    made[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_false(hk_mac_good(m, "Hi There", 8, made));
  }
  hk_mac_free(m);
}

/* A key and a certificate signed by itself, as PEM in one file. */
static void make_certificate(char path[32])
{
  strcpy(path, "/tmp/hankeld-test-XXXXXX");
  const int fd = mkstemp(path);
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
  X509 *certificate = X509_new();
  assert_true(file && key && certificate);
  assert_int_equal(X509_set_version(certificate, 2), 1);
  assert_int_equal(
      X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const uint8_t *)"test", -1, -1, 0), 1);
  assert_int_equal(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)), 1);
  assert_non_null(X509_gmtime_adj(X509_getm_notBefore(certificate), 0));
  assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate), 3600));
  assert_int_equal(X509_set_pubkey(certificate, key), 1);
  assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
  assert_int_equal(PEM_write_X509(file, certificate), 1);
  assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
  assert_int_equal(fclose(file), 0);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

/* Root may read everything, so the test runs as another user meanwhile. */
static void a_file_that_may_not_be_read_is_said_to_be_so(void **state)
{
  struct hk_rules rules = { 0 };
  struct hk_tls_context *context;
  char path[32], error[512];
  (void)state;
  make_certificate(path);
  snprintf(rules.certificate, sizeof rules.certificate, "%s", path);
  snprintf(rules.key, sizeof rules.key, "%s", path);
  assert_int_equal(chmod(path, 0), 0);
  const bool root = geteuid() == 0;
  assert_int_equal(root ? seteuid(65534) : 0, 0);
  const int status = hk_tls_context_new(&context, &rules, error, sizeof error);
  assert_int_equal(root ? seteuid(0) : 0, 0);
  assert_int_equal(status, -EACCES);
  assert_non_null(strstr(error, "Permission denied"));
  unlink(path);
}

/* OpenSSL has numbers for about 127 types of BIO in a process: a repeated operation must not use them up. */
static void no_reload_and_no_connection_uses_up_a_type_of_bio(void **state)
{
  struct hk_rules rules = { 0 };
  char path[32], error[512];
  (void)state;
  make_certificate(path);
  snprintf(rules.certificate, sizeof rules.certificate, "%s", path);
  snprintf(rules.key, sizeof rules.key, "%s", path);
  const struct hankel_security security = { .tls = 1, .ca = path };
  const int before = BIO_get_new_index();
  for (int i = 0; i < 300; i++) {
    struct hk_tls_context *context;
    struct hk_client_tls *client;
    assert_int_equal(hk_tls_context_new(&context, &rules, error, sizeof error), 0);
    struct hk_tls *tls = hk_tls_new(context);
    assert_non_null(tls);
    hk_tls_free(tls);
    hk_tls_context_free(context);
    assert_int_equal(hk_client_tls_new(&client, &security, "127.0.0.1", -1, error, sizeof error), 0);
    hk_client_tls_free(client);
  }
  assert_int_equal(BIO_get_new_index(), before + 1);
  unlink(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(scopes_are_read_and_written),
    cmocka_unit_test(tokens_are_found_by_all_of_their_bytes),
    cmocka_unit_test(a_nul_byte_hides_no_token),
    cmocka_unit_test(a_token_file_is_good_or_refused),
    cmocka_unit_test(feeds_are_their_owners),
    cmocka_unit_test(one_address_has_what_it_is_given),
    cmocka_unit_test(failures_are_forgotten_after_a_minute),
    cmocka_unit_test(the_table_stays_as_it_is),
    cmocka_unit_test(a_keyed_checksum_is_that_of_the_standard),
    cmocka_unit_test(a_file_that_may_not_be_read_is_said_to_be_so),
    cmocka_unit_test(no_reload_and_no_connection_uses_up_a_type_of_bio),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
