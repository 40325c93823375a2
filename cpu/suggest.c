/* Optimal string alignment: a table of at most 32 by 32. */
#include "cpu/suggest.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 32
#define SHORTEST_START 3 /* characters of a word that is taken for the beginning of another */

static unsigned suggest_least(unsigned a, unsigned b)
{
  return a < b ? a : b;
}

/* Number of changes (substitution, insertion, deletion, transposition of neighbours) between words of n and m characters. */
static unsigned suggest_changes(const char *word, size_t n, const char *other, size_t m)
{
  unsigned table[LONGEST + 1][LONGEST + 1];
  for (size_t i = 0; i <= n; i++)
    for (size_t k = 0; k <= m; k++) {
      if (i == 0 || k == 0) {
        table[i][k] = (unsigned)(i + k);
        continue;
      }
      table[i][k] =
          suggest_least(suggest_least(table[i - 1][k], table[i][k - 1]) + 1, table[i - 1][k - 1] + (word[i - 1] != other[k - 1]));
      if (i > 1 && k > 1 && word[i - 1] == other[k - 2] && word[i - 2] == other[k - 1])
        table[i][k] = suggest_least(table[i][k], table[i - 2][k - 2] + 1);
    }
  return table[n][m];
}

unsigned hk_suggest_distance(const char *word, const char *other)
{
  const size_t n = strlen(word), m = strlen(other);
  if (strcmp(word, "gpu") == 0 && strcmp(other, "cuda") == 0) /* cpu is nearer by its letters alone */
    return 0;
  if (n >= SHORTEST_START && strncmp(word, other, n) == 0)
    return n < m;
  if (n > LONGEST || m > LONGEST)
    return HK_SUGGEST_FAR + 1;
  const unsigned changes = suggest_changes(word, n, other, m);
  return 2 * changes < (n > m ? n : m) ? changes : HK_SUGGEST_FAR + 1;
}

const char *hk_suggest(const char *word, const char *const *words, size_t n, size_t apart)
{
  const char *nearest = NULL;
  unsigned distance = HK_SUGGEST_FAR + 1;
  for (size_t i = 0; i < n; i++) {
    const char *const each = *(const char *const *)(const void *)((const char *)words + i * apart);
    const unsigned d = hk_suggest_distance(word, each);
    if (d < distance) {
      distance = d;
      nearest = each;
    }
  }
  return nearest;
}

void hk_suggest_of(const char *word, const char *list, char *message, size_t size)
{
  char nearest[LONGEST + 1] = "";
  unsigned distance = HK_SUGGEST_FAR + 1;
  for (const char *at = list; *at; at += strspn(at, ", ")) {
    char each[LONGEST + 1];
    const size_t length = strcspn(at, ",");
    snprintf(each, sizeof each, "%.*s", (int)length, at);
    const unsigned d = hk_suggest_distance(word, each);
    if (length <= LONGEST && d < distance) {
      distance = d;
      strcpy(nearest, each);
    }
    at += length;
  }
  const size_t used = strnlen(message, size);
  if (nearest[0] && size - used > sizeof "; did you mean ?" + strlen(nearest))
    snprintf(message + used, size - used, "; did you mean %s?", nearest);
}
