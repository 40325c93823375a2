/* Template: a text with names in it, for which values of a JSON object are put in: a part of Mustache.
 *
 *     {{name}}  {{a.b}}  {{.}}     the value, escaped as its receiver needs it
 *     {{{name}}}  {{&name}}        the value as it is
 *     {{#name}} ... {{/name}}      once for each element of a list; once, if it is any other value than false, null, 0, "" or
 *                                  nothing. An object, also as an element, is where names are looked for first
 *     {{^name}} ... {{/name}}      once, if it is one of these, or an empty list
 *     {{! comment }}
 *
 * A tag of a section or comment that stands on a line alone takes the line with it. What Mustache has beyond that (partials,
 * other delimiters, functions) is refused. Debian has Mustache for C++ and for other languages, and none for C.
 *
 * Thread: any. */
#ifndef HK_TEMPLATE_H
#define HK_TEMPLATE_H

#include "daemon/base/buffer.h"

#include <cjson/cJSON.h>
#include <stdint.h>

#define HK_TEMPLATE_DEPTH 8 /* sections in each other */

struct hk_template_fault {
  uint32_t line, column; /* from 1 on; columns are characters */
  char why[128];
};

/* Whether a text is a template. names: all that may be named, the list ends with NULL; one that ends with `.` stands for all that
 * begins so. NULL: any name is good. 0, or -EINVAL and *fault. */
int hk_template_check(const char *text, const char *const *names, struct hk_template_fault *fault);

/* Writes a value so that its receiver takes it for what it is. */
typedef void hk_template_escape(struct hk_buffer *out, const char *value, size_t length);

/* Appends the text, with the values of the objects context[0..n-1], n <= 2; the last is asked first. text: checked; what is no
 * template ends it. most: bytes that it appends at most. 0, -EMSGSIZE: it would be longer, or -ENOMEM. */
int hk_template_render(const char *text, const cJSON *const *context, uint32_t n, hk_template_escape *escape, size_t most,
                       struct hk_buffer *out);

#endif
