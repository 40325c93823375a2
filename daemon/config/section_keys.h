/* Keys of a section, as a table: how each is called, what it takes, and where in the section's rule its value goes. The sections
 * that have a rule of their own are read by it; [daemon] has its own table, of keys that a reload compares. Thread: any. */
#ifndef HK_SECTION_KEYS_H
#define HK_SECTION_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_SECTION_TEXT 256 /* bytes of a text, with the 0: a line is no longer */
#define HK_SECTION_GLOB 513 /* bytes of a glob, with the 0 */

enum hk_section_kind {
  HK_TAKES_TEXT,     /* char[HK_SECTION_TEXT]: 1 byte or more, none of them a control character; so it can go into headers */
  HK_TAKES_GLOB,     /* char[HK_SECTION_GLOB] */
  HK_TAKES_WORD,     /* uint32_t: its place in `words` */
  HK_TAKES_FLAG,     /* bool: the same, of two words */
  HK_TAKES_WORDS,    /* uint32_t: bit 1 << place for each, with commas or blanks between them */
  HK_TAKES_NUMBER,   /* double, min..max */
  HK_TAKES_WHOLE,    /* uint32_t, min..max */
  HK_TAKES_DURATION, /* int64_t ns, min..max */
  HK_TAKES_OTHER,    /* whatever `take` makes of it */
};

struct hk_section_key {
  const char *name;
  enum hk_section_kind kind;
  size_t at;                /* in the rule */
  const char *wrong;        /* what is said of a value that it cannot be; not for texts and globs */
  const char *const *words; /* ends with NULL; its empty words are no words */
  double min, max;
  bool off; /* the word off is a duration of 0 */
  /* NULL, or what is wrong with the value; `wrong` says no more then */
  const char *(*take)(void *field, const char *value);
};

/* Of an entry: { "url", HK_TAKES(TEXT, struct rule, url) } */
#define HK_TAKES(what, rule, field) .kind = HK_TAKES_##what, .at = offsetof(rule, field)

extern const char *const hk_yes_words[]; /* no, yes */

/* Sets a key of a rule; bytes behind the end of a text are 0, so that equal rules are equal bytes. 0 or
 * -EINVAL with a message. section: what it is called, for that. */
int hk_section_key_set(const char *section, const struct hk_section_key *keys, size_t n, void *rule, const char *name,
                       const char *value, char *error, size_t size);

/* Says that a section has no key of a name, and which of n may have been meant; names: as hk_suggest has them. -EINVAL. */
int hk_section_no_key(const char *section, const char *name, const char *const *names, size_t n, size_t apart, char *error,
                      size_t size);

/* Index of a word in a list that ends with NULL; its empty words are no words. 0 or -EINVAL. */
int hk_word_find(const char *const *words, const char *word, uint32_t *out);

#endif
