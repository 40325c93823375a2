/* The key is set up once; each checksum starts from a copy of that state. See mac.h. */
#include "proto/wire/mac.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifdef HK_HAVE_TLS
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

struct hk_mac {
  EVP_MAC_CTX *context;
};

struct hk_mac *hk_mac_new(const uint8_t key[HK_MAC_KEY])
{
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                    OSSL_PARAM_construct_end() };
  struct hk_mac *m = calloc(1, sizeof *m);
  EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
  if (m && hmac)
    m->context = EVP_MAC_CTX_new(hmac);
  EVP_MAC_free(hmac); /* the context has its own reference */
  if (m && m->context && EVP_MAC_init(m->context, key, HK_MAC_KEY, parameters) == 1)
    return m;
  hk_mac_free(m);
  return NULL;
}

void hk_mac_free(struct hk_mac *m)
{
  if (!m)
    return;
  EVP_MAC_CTX_free(m->context);
  free(m);
}

int hk_mac_make(struct hk_mac *m, const void *data, size_t size, uint8_t out[HK_MAC_BYTES])
{
  uint8_t whole[32];
  size_t length = 0;
  if (EVP_MAC_init(m->context, NULL, 0, NULL) != 1 || EVP_MAC_update(m->context, data, size) != 1 ||
      EVP_MAC_final(m->context, whole, &length, sizeof whole) != 1 || length != sizeof whole)
    return -EIO;
  memcpy(out, whole, HK_MAC_BYTES);
  return 0;
}

bool hk_mac_good(struct hk_mac *m, const void *data, size_t size, const uint8_t shown[HK_MAC_BYTES])
{
  uint8_t is[HK_MAC_BYTES];
  return hk_mac_make(m, data, size, is) == 0 && CRYPTO_memcmp(is, shown, HK_MAC_BYTES) == 0;
}

#else

struct hk_mac *hk_mac_new(const uint8_t key[HK_MAC_KEY])
{
  (void)key;
  return NULL;
}
void hk_mac_free(struct hk_mac *m)
{
  (void)m;
}
int hk_mac_make(struct hk_mac *m, const void *data, size_t size, uint8_t out[HK_MAC_BYTES])
{
  (void)m, (void)data, (void)size, (void)out;
  return -ENOSYS;
}
bool hk_mac_good(struct hk_mac *m, const void *data, size_t size, const uint8_t shown[HK_MAC_BYTES])
{
  (void)m, (void)data, (void)size, (void)shown;
  return false;
}

#endif
