/* See tls_files.h. */
#include "daemon/net/tls_files.h"

#include "proto/wire/pem.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

static int tls_files_fail(int status, const char *path, const char *what, const char *why, char *error, size_t size)
{
  const unsigned long code = ERR_get_error();
  const char *words = code ? ERR_reason_error_string(code) : NULL;
  snprintf(error, size, "%s: %s: %s", path, what, why[0] ? why : words ? words : "no memory, or not a file of the expected kind");
  ERR_clear_error();
  return status == -EBADMSG ? -EINVAL : status;
}

/* Whether a list is signed by one of the accepted authorities. */
static bool is_signed(X509_STORE *authorities, X509_CRL *list)
{
  STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(authorities);
  bool good = false;
  for (int i = 0; i < sk_X509_OBJECT_num(all) && !good; i++) {
    X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    good = authority && X509_NAME_cmp(X509_get_subject_name(authority), X509_CRL_get_issuer(list)) == 0 &&
           (X509_get_key_usage(authority) & KU_CRL_SIGN) && X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1;
  }
  ERR_clear_error();
  return good;
}

static int load_lists(SSL_CTX *context, STACK_OF(X509_CRL) * *lists, const char *path, char *error, size_t size)
{
  static const char none[] = "no list of revoked certificates can be read from it";
  char why[HK_SECRET_WHY];
  X509_STORE *store = SSL_CTX_get_cert_store(context);
  int status = hk_pem_lists(path, lists, why);
  for (int i = 0; status == 0 && i < sk_X509_CRL_num(*lists); i++) {
    X509_CRL *list = sk_X509_CRL_value(*lists, i);
    if (!is_signed(store, list)) { /* with such a list, every certificate of that authority would be rejected */
      snprintf(why, sizeof why, "no authority of tls_client_ca that may (cRLSign) has signed list %d of it", i + 1);
      status = -EBADMSG;
    } else if (X509_STORE_add_crl(store, list) != 1) {
      status = -ENOMEM;
    }
  }
  if (status != 0)
    return tls_files_fail(status, path, none, why, error, size);
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return 0;
}

int hk_tls_files_load(SSL_CTX *context, STACK_OF(X509_CRL) * *lists, const struct hk_rules *rules, char *error, size_t size)
{
  char why[HK_SECRET_WHY];
  *lists = NULL;
  int status = hk_pem_chain(context, rules->certificate, HK_SECRET_FILE, why);
  if (status != 0)
    return tls_files_fail(status, rules->certificate, "no certificate can be read from it", why, error, size);
  status = hk_pem_key(context, rules->key, HK_SECRET_FILE, why);
  if (status != 0)
    return tls_files_fail(status, rules->key, "no key that belongs to the certificate can be read from it", why, error, size);
  if (!rules->client_ca[0])
    return 0;
  STACK_OF(X509_NAME) * names;
  status = hk_pem_authorities(context, rules->client_ca, HK_SECRET_FILE, &names, why);
  if (status != 0)
    return tls_files_fail(status, rules->client_ca, "no certificate of an authority can be read from it", why, error, size);
  SSL_CTX_set_client_CA_list(context, names); /* takes ownership */
  return rules->crl[0] ? load_lists(context, lists, rules->crl, error, size) : 0;
}

int64_t hk_tls_files_left(const ASN1_TIME *time)
{
  int days = 0, seconds = 0;
  if (!time || ASN1_TIME_diff(&days, &seconds, NULL, time) != 1)
    return 0;
  return (int64_t)days * 86400 + seconds;
}

bool hk_tls_files_revoked(STACK_OF(X509_CRL) * lists, const X509 *certificate)
{
  bool revoked = false;
  for (int i = 0; lists && i < sk_X509_CRL_num(lists) && !revoked; i++) {
    X509_CRL *list = sk_X509_CRL_value(lists, i);
    X509_REVOKED *entry;
    revoked = X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_issuer_name(certificate)) == 0 &&
              X509_CRL_get0_by_serial(list, &entry, (ASN1_INTEGER *)(uintptr_t)X509_get0_serialNumber(certificate)) == 1;
  }
  return revoked;
}

void hk_tls_files_whose(const X509 *certificate, char out[HK_TLS_WHOSE])
{
  BIO *bio = BIO_new(BIO_s_mem());
  char name[96] = "?";
  if (bio && X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) >= 0) {
    const int n = BIO_read(bio, name, sizeof name - 1); /* control characters are escaped */
    name[n > 0 ? n : 0] = 0;
  }
  BIO_free(bio);
  BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
  char *serial = number ? BN_bn2hex(number) : NULL;
  snprintf(out, HK_TLS_WHOSE, "%s, serial %.42s", name, serial ? serial : "?");
  OPENSSL_free(serial);
  BN_free(number);
}
