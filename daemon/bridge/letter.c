#include "daemon/bridge/letter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE 320 /* bytes of a letter's first line, at most */

static const char *const kinds[] = { "notice", "question", "answer" };

/* Operators see a machine's name, and it is part of a queue's name. */
static bool letter_machine_valid(const char *name)
{
  for (const char *p = name; *p; p++)
    if (*p <= ' ' || *p > '~' || *p == '"' || *p == '\\')
      return false;
  return name[0] != 0;
}

bool hk_letter_read(const void *data, size_t size, struct hk_letter *out, unsigned *of_version)
{
  char line[LINE], kind[12] = "";
  const char *end = memchr(data, '\n', size < LINE ? size : LINE);
  unsigned version = 0;
  int at = 0;
  *of_version = 0;
  if (!end)
    return false;
  const size_t length = (size_t)(end - (const char *)data);
  memcpy(line, data, length);
  line[length] = 0;
  *out = (struct hk_letter){ .body = end + 1, .size = size - length - 1 };
  if (strlen(line) != length || sscanf(line, "%11[a-z] %3u %n", kind, &version, &at) != 2)
    return false;
  *of_version = version < 1000 ? version : 0;
  if (version != HK_LETTER_VERSION)
    return false;
  const char *rest = line + at;
  int over = 0;
  while (strcmp(kinds[out->kind], kind) != 0)
    if (++out->kind > HK_LETTER_ANSWER)
      return false;
  if (out->kind == HK_LETTER_ANSWER)
    return sscanf(rest, "%20" SCNu64 " %3" SCNu32 "%n", &out->id, &out->status, &over) == 2 && rest[over] == 0 &&
           out->status >= 100 && out->status < 600;
  if (out->kind == HK_LETTER_QUESTION) {
    if (sscanf(rest, "%20" SCNu64 " %n", &out->id, &over) != 1)
      return false;
    rest += over;
  }
  return (size_t)snprintf(out->machine, sizeof out->machine, "%s", rest) < sizeof out->machine &&
         letter_machine_valid(out->machine);
}

void hk_letter_begin(struct hk_buffer *out, const struct hk_letter *l)
{
  hk_buffer_print(out, "%s %d ", kinds[l->kind], HK_LETTER_VERSION);
  if (l->kind != HK_LETTER_NOTICE)
    hk_buffer_print(out, "%" PRIu64 " ", l->id);
  if (l->kind == HK_LETTER_ANSWER)
    hk_buffer_print(out, "%" PRIu32 "\n", l->status);
  else
    hk_buffer_print(out, "%s\n", l->machine);
}
