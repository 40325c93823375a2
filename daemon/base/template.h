/* Template: a text in which names are replaced by values of a JSON object: a subset of Mustache.
 *
 *     {{name}}  {{a.b}}  {{.}}     the value, escaped for its receiver
 *     {{{name}}}  {{&name}}        the value, not escaped
 *     {{#name}} ... {{/name}}      once for each element of a list; once, if it is any other value than false, null, 0, "" or
 *                                  missing. Within an object, also as an element, names are looked up in it first
 *     {{^name}} ... {{/name}}      once, if it is one of these, or an empty list
 *     {{! comment }}
 *
 * A tag of a section or comment alone on a line removes the line. Other features of Mustache (partials, other delimiters,
 * functions) are errors. Debian has Mustache for C++ and other languages, but not for C.
 *
 * Thread: any. */
#ifndef HK_TEMPLATE_H
#define HK_TEMPLATE_H

#include "daemon/base/buffer.h"

#include <cjson/cJSON.h>
#include <stdint.h>

#define HK_TEMPLATE_DEPTH 8 /* nested sections */

struct hk_template_fault {
  uint32_t line, column; /* from 1; columns count characters */
  char why[128];
};

/* Checks a template. names: the permitted names, terminated by NULL; a name that ends with `.` permits all names with this
 * beginning. NULL: all names are permitted. Returns 0, or -EINVAL and *fault. */
int hk_template_check(const char *text, const char *const *names, struct hk_template_fault *fault);

/* Appends a value, escaped for its receiver. */
typedef void hk_template_escape(struct hk_buffer *out, const char *value, size_t length);

/* Appends the text with values of the objects context[0..n-1], n <= 2; the last has precedence. text: checked; an invalid tag
 * ends it. most: maximum number of appended bytes. Returns 0, -EMSGSIZE if the text would be longer, or -ENOMEM. */
int hk_template_render(const char *text, const cJSON *const *context, uint32_t n, hk_template_escape *escape, size_t most,
                       struct hk_buffer *out);

#endif
