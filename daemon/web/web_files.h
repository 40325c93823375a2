/* Files that the build has embedded: the page, and the description of the API. Thread: any, unless stated otherwise. */
#ifndef HK_WEB_FILES_H
#define HK_WEB_FILES_H

#include <stddef.h>

struct lws;
struct hk_web_peer;

struct hk_web_file {
  const char *path, *type;
  const unsigned char *data;
  size_t size;
};
extern const struct hk_web_file hk_web_files[]; /* made by scripts/embed; the last one has no path */

/* Finds the file of a path. NULL: none. */
const struct hk_web_file *hk_web_file_of(const char *path);
/* Answers with a file. Returns as hk_web_reply. Thread: the web's. */
int hk_web_file_reply(struct lws *wsi, struct hk_web_peer *p, const struct hk_web_file *file);

#endif
