#include "daemon/publish/names_sent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hk_names_sent_add(struct hk_names_sent *s, uint32_t slot)
{
  const uint32_t page = slot / HK_NAMES_SENT_PAGE;
  if (page >= s->pages) {
    uint64_t **pages = realloc(s->page, (page + 1) * sizeof *pages);
    if (!pages)
      return -ENOMEM;
    memset(pages + s->pages, 0, (page + 1 - s->pages) * sizeof *pages);
    s->page = pages;
    s->pages = page + 1;
  }
  if (!s->page[page] && !(s->page[page] = calloc(HK_NAMES_SENT_PAGE / 64, sizeof **s->page)))
    return -ENOMEM;
  s->page[page][slot % HK_NAMES_SENT_PAGE / 64] |= (uint64_t)1 << slot % 64;
  return 0;
}

void hk_names_sent_free(struct hk_names_sent *s)
{
  for (uint32_t i = 0; i < s->pages; i++)
    free(s->page[i]);
  free(s->page);
  *s = (struct hk_names_sent){ 0 };
}
