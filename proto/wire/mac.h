/* Keyed checksum of datagrams: the first 16 bytes of the HMAC-SHA-256 (RFC 2104, FIPS 198-1) of the whole frame, appended to
 * the frame. PROTOCOL.md has the rule. A build without OpenSSL has none. Thread: that of an object's owner. */
#ifndef HK_MAC_H
#define HK_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_MAC_KEY 32u   /* bytes */
#define HK_MAC_BYTES 16u /* after the frame */

struct hk_mac;

/* Returns NULL if out of memory or built without OpenSSL. */
struct hk_mac *hk_mac_new(const uint8_t key[HK_MAC_KEY]);
void hk_mac_free(struct hk_mac *mac); /* NULL is allowed */
/* Computes the checksum of `size` bytes. Returns 0 or -EIO. */
int hk_mac_make(struct hk_mac *mac, const void *data, size_t size, uint8_t out[HK_MAC_BYTES]);
/* Whether a checksum is correct; runs in constant time. */
bool hk_mac_good(struct hk_mac *mac, const void *data, size_t size, const uint8_t shown[HK_MAC_BYTES]);

#endif
