/* libcurl's functions, for files of this room alone. They are loaded by hk_sender_new. */
#ifndef HK_NOTIFY_CURL_H
#define HK_NOTIFY_CURL_H

#include "cpu/library.h"

#include <curl/curl.h>

#define HK_CURL_CALLS(_)                                                                                                         \
  _(curl_, global_init)                                                                                                          \
  _(curl_, easy_init)                                                                                                            \
  _(curl_, easy_setopt)                                                                                                          \
  _(curl_, easy_perform)                                                                                                         \
  _(curl_, easy_send)                                                                                                            \
  _(curl_, easy_getinfo)                                                                                                         \
  _(curl_, easy_reset)                                                                                                           \
  _(curl_, easy_strerror)                                                                                                        \
  _(curl_, easy_cleanup)                                                                                                         \
  _(curl_, slist_append)                                                                                                         \
  _(curl_, slist_free_all)

struct hk_curl {
  HK_CURL_CALLS(HK_LIBRARY_CALL)
};
extern struct hk_curl hk_curl;

#endif
