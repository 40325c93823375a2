/* Values of the keys of a rule: the sections [group] and [field], and the KEYS of a command line. Thread: any. */
#ifndef HK_RULE_KEYS_H
#define HK_RULE_KEYS_H

#include <stddef.h>
#include <stdint.h>

/* Read a number from least to most into *out. Return 0, or -EINVAL with a message that names the key and the value. */
int hk_rule_whole(uint32_t *out, uint32_t least, uint32_t most, const char *key, const char *value, char *error, size_t size);
int hk_rule_real(double *out, double least, double most, const char *key, const char *value, char *error, size_t size);

/* Sets a key of a rule; returns 0, or a negative errno with a message. */
typedef int hk_rule_set(void *rule, const char *key, const char *value, char *error, size_t size);

/* Sets the keys of a text KEY=VALUE,KEY=VALUE,... with blanks around keys and values, of at most HK_RULE_TEXT_MAX bytes. Returns
 * 0, or -EINVAL with a message. */
#define HK_RULE_TEXT_MAX 2047
int hk_rule_parse(const char *text, hk_rule_set *set, void *rule, char *error, size_t size);

#endif
