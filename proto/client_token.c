/* libhankel: where a token comes from. See client_tls.h. */
#include "proto/client_tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int hk_client_token(const struct hankel_security *s, char token[HK_CLIENT_TOKEN], char *error, size_t size)
{
  token[0] = 0;
  if (s->token) {
    if (snprintf(token, HK_CLIENT_TOKEN, "%s", s->token) >= HK_CLIENT_TOKEN) {
      snprintf(error, size, "the token is longer than %d bytes", HK_CLIENT_TOKEN - 1);
      return -EACCES;
    }
    return 0;
  }
  if (!s->token_file)
    return 0;
  FILE *file = fopen(s->token_file, "re");
  const bool read = file && fgets(token, HK_CLIENT_TOKEN, file);
  const int fault = file ? 0 : errno;
  if (file)
    fclose(file);
  token[strcspn(token, "\r\n \t")] = 0;
  if (read && token[0])
    return 0;
  snprintf(error, size, "%.200s: %s", s->token_file, fault ? strerror(fault) : "there is no token in its first line");
  return -EACCES;
}
