/* Parses ordinary lines of the line protocol fast. */
#ifndef HK_LINE_QUICK_H
#define HK_LINE_QUICK_H

#include "proto/line/line.h"

#define HK_LINE_BEHIND 64 /* readable bytes that must follow the text */

/* Parses the line at text, up to the next LF, which it finds on the way, if the line is ordinary. Returns the line's bytes
 * including the LF, or 0: not ordinary, perhaps invalid; hk_line_parse must parse it, and *l is undefined. text must contain
 * an LF, followed by HK_LINE_BEHIND readable bytes of any value. */
size_t hk_line_quick(struct hk_line *l, const char *text);

#endif
