/* See tls_options.h. */
#include "daemon/cli/tls_options.h"

int hk_secure_take(struct hankel_security *s, int option, const char *value)
{
  switch (option) {
  case HK_SECURE_TLS:
    break;
  case HK_SECURE_CA:
    s->ca = value;
    break;
  case HK_SECURE_CERT:
    s->certificate = value;
    break;
  case HK_SECURE_KEY:
    s->key = value;
    break;
  case HK_SECURE_TOKEN:
    s->token_file = value;
    return 0;
  case HK_SECURE_CLEAR:
    s->token_in_clear = 1;
    return 0;
  default:
    return HK_EXIT_USAGE;
  }
  s->tls = 1; /* --ca and the others make no sense without */
  return 0;
}
