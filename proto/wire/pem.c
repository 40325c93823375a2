/* See pem.h. */
#include "proto/wire/pem.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

/* A file in memory; close it with file_close. */
struct file {
  char *data;
  size_t size;
  BIO *bio;
};

static int file_open(struct file *f, const char *path, size_t most, int patience, char why[HK_SECRET_WHY])
{
  const int status = hk_secret_read(path, most, patience, &f->data, &f->size, why);
  f->bio = status == 0 ? BIO_new_mem_buf(f->size > 0 ? f->data : "\n", f->size > 0 ? (int)f->size : 1) : NULL;
  ERR_clear_error();
  why[status == 0 ? 0 : HK_SECRET_WHY - 1] = 0; /* "": OpenSSL's error queue has the reason */
  return status != 0 || f->bio ? status : -ENOMEM;
}

static void file_close(struct file *f)
{
  BIO_free(f->bio);
  hk_secret_free(f->data, f->size);
}

/* Whether reading ended at the end of the file, not by an error. */
static bool at_end(void)
{
  const unsigned long code = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  if (end)
    ERR_clear_error();
  return end;
}

static int no_passphrase(char *out, int size, int writes, void *arg)
{
  (void)out, (void)size, (void)writes, (void)arg;
  return -1;
}

int hk_pem_chain(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY])
{
  struct file f = { 0 };
  int status = file_open(&f, path, HK_PEM_MOST, patience, why);
  X509 *certificate = status == 0 ? PEM_read_bio_X509_AUX(f.bio, NULL, no_passphrase, NULL) : NULL;
  if (status == 0 && (!certificate || SSL_CTX_use_certificate(context, certificate) != 1))
    status = -EBADMSG;
  X509_free(certificate);
  while (status == 0 && (certificate = PEM_read_bio_X509(f.bio, NULL, no_passphrase, NULL)))
    if (SSL_CTX_add0_chain_cert(context, certificate) != 1) { /* takes ownership on success */
      X509_free(certificate);
      status = -EBADMSG;
    }
  if (status == 0 && !at_end())
    status = -EBADMSG;
  file_close(&f);
  return status;
}

int hk_pem_key(SSL_CTX *context, const char *path, int patience, char why[HK_SECRET_WHY])
{
  struct file f = { 0 };
  int status = file_open(&f, path, HK_PEM_MOST, patience, why);
  EVP_PKEY *key = status == 0 ? PEM_read_bio_PrivateKey(f.bio, NULL, no_passphrase, NULL) : NULL;
  if (status == 0 && (!key || SSL_CTX_use_PrivateKey(context, key) != 1 || SSL_CTX_check_private_key(context) != 1))
    status = -EBADMSG;
  EVP_PKEY_free(key);
  file_close(&f);
  return status;
}

int hk_pem_authorities(SSL_CTX *context, const char *path, int patience, STACK_OF(X509_NAME) * *names, char why[HK_SECRET_WHY])
{
  struct file f = { 0 };
  int status = file_open(&f, path, HK_PEM_TRUST_MOST, patience, why);
  uint32_t n = 0;
  STACK_OF(X509_NAME) *list = sk_X509_NAME_new_null();
  if (status == 0 && !list)
    status = -ENOMEM;
  for (X509 *certificate; status == 0 && (certificate = PEM_read_bio_X509_AUX(f.bio, NULL, no_passphrase, NULL)); n++) {
    X509_NAME *name = X509_NAME_dup(X509_get_subject_name(certificate));
    if (!name || sk_X509_NAME_push(list, name) <= 0) {
      X509_NAME_free(name);
      status = -ENOMEM;
    } else if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) != 1) {
      status = -EBADMSG;
    }
    X509_free(certificate);
  }
  if (status == 0 && (n == 0 || !at_end()))
    status = -EBADMSG;
  if (status == 0 && names)
    *names = list;
  else
    sk_X509_NAME_pop_free(list, X509_NAME_free);
  file_close(&f);
  return status;
}

int hk_pem_lists(const char *path, STACK_OF(X509_CRL) * *lists, char why[HK_SECRET_WHY])
{
  struct file f = { 0 };
  int status = file_open(&f, path, HK_PEM_TRUST_MOST, HK_SECRET_FILE, why);
  STACK_OF(X509_CRL) *out = sk_X509_CRL_new_null();
  if (status == 0 && !out)
    status = -ENOMEM;
  for (X509_CRL *list; status == 0 && (list = PEM_read_bio_X509_CRL(f.bio, NULL, no_passphrase, NULL));)
    if (sk_X509_CRL_push(out, list) <= 0) {
      X509_CRL_free(list);
      status = -ENOMEM;
    }
  if (status == 0 && (sk_X509_CRL_num(out) == 0 || !at_end()))
    status = -EBADMSG;
  if (status == 0)
    *lists = out;
  else
    sk_X509_CRL_pop_free(out, X509_CRL_free);
  file_close(&f);
  return status;
}
