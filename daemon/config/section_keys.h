/* Keys of a section, as a table: the name of each, its kind of value, and where in the section's rule its value is stored.
 * Sections with a rule of their own use it; [daemon] has its own table, of keys that a reload compares. Thread: any. */
#ifndef HK_SECTION_KEYS_H
#define HK_SECTION_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HK_SECTION_TEXT 256 /* bytes of a text, with the 0: a line is no longer */
#define HK_SECTION_GLOB 513 /* bytes of a glob, with the 0 */

enum hk_section_kind {
  HK_TAKES_TEXT,     /* char[HK_SECTION_TEXT]: at least 1 byte, no control characters, so that it can go into headers */
  HK_TAKES_GLOB,     /* char[HK_SECTION_GLOB] */
  HK_TAKES_WORD,     /* uint32_t: its index in `words` */
  HK_TAKES_FLAG,     /* bool: likewise, of two words */
  HK_TAKES_WORDS,    /* uint32_t: bit 1 << index for each, separated by commas or blanks */
  HK_TAKES_NUMBER,   /* double, min..max */
  HK_TAKES_WHOLE,    /* uint32_t, min..max */
  HK_TAKES_DURATION, /* int64_t ns, min..max */
  HK_TAKES_OTHER,    /* parsed by `take` */
};

struct hk_section_key {
  const char *name;
  enum hk_section_kind kind;
  size_t at;                /* offset in the rule */
  const char *wrong;        /* message for an invalid value; not for texts and globs */
  const char *const *words; /* terminated by NULL; empty words match nothing */
  double min, max;
  bool off; /* the word off is a duration of 0 */
  /* Returns NULL, or what is wrong with the value, in place of `wrong`. */
  const char *(*take)(void *field, const char *value);
};

/* For an entry: { "url", HK_TAKES(TEXT, struct rule, url) } */
#define HK_TAKES(what, rule, field) .kind = HK_TAKES_##what, .at = offsetof(rule, field)

extern const char *const hk_yes_words[]; /* no, yes */

/* Sets a key of a rule; bytes after the end of a text are 0, so that equal rules have equal bytes. section: its name, for
 * messages. Returns 0, or -EINVAL with a message. */
int hk_section_key_set(const char *section, const struct hk_section_key *keys, size_t n, void *rule, const char *name,
                       const char *value, char *error, size_t size);

/* Writes the message that a section has no key of a name, with a suggestion; names: as for hk_suggest. Returns -EINVAL. */
int hk_section_no_key(const char *section, const char *name, const char *const *names, size_t n, size_t apart, char *error,
                      size_t size);

/* Finds the index of a word in a list terminated by NULL, whose empty words match nothing. Returns 0 or -EINVAL. */
int hk_word_find(const char *const *words, const char *word, uint32_t *out);

#endif
