/* Text protocol: functions for other files. */
#ifndef HK_PROTOCOL_TEXT_H
#define HK_PROTOCOL_TEXT_H

#include "daemon/net/connection.h"

/* Reads a line that selects results (PROTOCOL.md). NULL and *out (its glob points into the line), or the error. */
const char *hk_text_parse(const char *line, size_t length, struct hk_wanted *out);

#endif
