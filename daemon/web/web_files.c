#include "daemon/web/web_files.h"

#include "daemon/web/web_reply.h"

#include <string.h>

const struct hk_web_file *hk_web_file_of(const char *path)
{
  for (const struct hk_web_file *f = hk_web_files; f->path; f++)
    if (strcmp(f->path, path) == 0)
      return f;
  return NULL;
}

int hk_web_file_reply(struct lws *wsi, struct hk_web_peer *p, const struct hk_web_file *file)
{
  hk_buffer_put(&p->answer.body, (const char *)file->data, file->size);
  return hk_web_reply(wsi, p, 200, file->type, NULL);
}
