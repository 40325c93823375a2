/* Socket addresses: parsing and formatting. Host names are not resolved, since that could block. Thread: any. */
#ifndef HK_ADDRESS_H
#define HK_ADDRESS_H

#include <netinet/in.h>

/* Reads "127.0.0.1:7410", "[::1]:7410" or "localhost:7410". Returns 0 or -EINVAL. */
int hk_address_parse(const char *text, struct sockaddr_storage *out);
/* Formats an address; `out` has room for HK_ADDRESS_MAX bytes. */
#define HK_ADDRESS_MAX 64
void hk_address_format(const struct sockaddr *address, char out[HK_ADDRESS_MAX]);

#endif
