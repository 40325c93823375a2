/* Names of the numbers in hankel.h, for messages. The clients in other languages have the same (scripts/check-protocol). */
#include "proto/hankel.h"

#define NAME(array, i) ((i) >= 0 && (size_t)(i) < sizeof(array) / sizeof *(array) && (array)[i] ? (array)[i] : "?")

const char *hankel_state_name(int state)
{
  static const char *const names[] = { "warming", "ok", "gap", "late", "rejected", "provisional" };
  return NAME(names, state);
}

const char *hankel_event_name(int kind)
{
  static const char *const names[] = {
    NULL, "raised", "corrected", "cleared", "stale", "back", NULL, "flapping", "acknowledged"
  };
  return NAME(names, kind);
}

const char *hankel_channel_name(int channel)
{
  static const char *const names[] = { NULL, "score", "change", "shift", "group", "novelty", "limit" };
  return NAME(names, channel);
}

const char *hankel_incident_name(int kind)
{
  static const char *const names[] = { NULL, "told", "update", "merged", "closed", "withheld", "expected", "false", "undone" };
  return NAME(names, kind);
}

const char *hankel_novelty_name(int kind)
{
  static const char *const names[] = { NULL, "value", "context", "shape" };
  return NAME(names, kind);
}

const char *hankel_severity_name(float severity)
{
  if (!(severity > 0))
    return "unknown";
  return severity >= HANKEL_SEVERE ? "severe" : severity >= HANKEL_WARNING ? "warning" : "notice";
}

const char *hankel_refusal_name(int refusal)
{
  static const char *const names[] = { NULL,
                                       "not a valid name",
                                       "the daemon is full",
                                       "no detector matches the name",
                                       "the daemon makes that series itself",
                                       "this peer has as many sensors as one may have" };
  return NAME(names, refusal);
}

const char *hankel_error_name(int code)
{
  static const char *const names[] = { NULL,           "bad magic",   "bad version",  "too long",       "bad checksum",
                                       "bad type",     "bad payload", "out of order", "unknown handle", "bad subscription",
                                       "limit",        "timeout",     "too slow",     "shutting down",  "internal",
                                       "unauthorized", "forbidden",   "bad picture" };
  return NAME(names, code);
}
