/* Parser of a line. See line.h; PROTOCOL.md (Line protocol) has the grammar.
 *
 * One pass with a cursor. Names stay in the line: only their start and end are noted. The first error ends the line. */
#include "proto/line/line.h"

#include "proto/line/number.h"

#include <string.h>

struct cursor {
  const char *p, *end;
};

static bool line_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* Bytes that end a token, and bytes that a backslash escapes. */
enum { COMMA = 1, EQUALS = 2, SPACE = 4 };

static const uint8_t delimiters[256] = { [','] = COMMA, ['='] = EQUALS, [' '] = SPACE };

/* Moves past a token to the first unescaped byte of `stop`, or to the end. Returns that byte, 0 at the end. */
static int token(struct cursor *c, int stop, int escapable)
{
  const char *p = c->p, *const end = c->end;
  int found = 0;
  while (p < end) {
    const uint8_t d = delimiters[(uint8_t)*p];
    if (d & stop) {
      found = d;
      break;
    }
    p += *p == '\\' && end - p >= 2 && (delimiters[(uint8_t)p[1]] & escapable) ? 2 : 1;
  }
  c->p = p;
  return found;
}

static void blanks(struct cursor *c)
{
  while (c->p < c->end && *c->p == ' ')
    c->p++;
}

/* measurement[,tag=value...]; moves the cursor to the space behind it. Returns NULL, or the error, with the cursor at its
 * position. */
static const char *line_read_key(struct cursor *c)
{
  const char *start = c->p;
  int stop = token(c, COMMA | SPACE, COMMA | SPACE);
  if (c->p == start)
    return "the measurement is empty";
  while (stop == COMMA) {
    start = ++c->p;
    if (token(c, COMMA | EQUALS | SPACE, COMMA | EQUALS | SPACE) != EQUALS)
      return "a tag has no value";
    if (c->p == start)
      return "a tag's key is empty";
    start = ++c->p;
    stop = token(c, COMMA | EQUALS | SPACE, COMMA | EQUALS | SPACE);
    if (stop == EQUALS)
      return "an equals sign in a tag's value is not escaped";
    if (c->p == start)
      return "a tag's value is empty";
  }
  return stop == SPACE ? NULL : "there are no fields";
}

/* "..." */
static const char *line_skip_string(struct cursor *c)
{
  const char *p = c->p + 1;
  while (p < c->end && *p != '"')
    p += *p == '\\' && c->end - p >= 2 && (p[1] == '"' || p[1] == '\\') ? 2 : 1;
  if (p == c->end)
    return "a string is not closed";
  c->p = p + 1;
  return NULL;
}

bool hk_line_boolean(const char *text, size_t length, double *value)
{
  static const char *const words[] = { "t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0) {
      *value = i < 5;
      return true;
    }
  }
  return false;
}

static const char *read_boolean(struct cursor *c, double *value)
{
  const size_t left = (size_t)(c->end - c->p);
  size_t n = 0;
  while (n < left && !(delimiters[(uint8_t)c->p[n]] & (COMMA | SPACE)))
    n++;
  if (!hk_line_boolean(c->p, n, value))
    return n == 0 ? "a field has no value" : "a field's value is no number, boolean or string";
  c->p += n;
  return NULL;
}

static const char *read_number(struct cursor *c, double *value)
{
  const size_t left = (size_t)(c->end - c->p);
  size_t used, whole_used;
  int64_t whole;
  uint64_t natural;
  const int status = hk_number_parse(c->p, left, value, &used);
  if (status == HK_NUMBER_RANGE)
    return "a number is too large";
  if (status == HK_NUMBER_NONE)
    return "a field's value is no number, boolean or string";
  const char suffix = used < left ? c->p[used] : 0;
  if (suffix == 'i' || suffix == 'u') {
    const int whole_status =
        suffix == 'i' ? hk_integer_parse(c->p, left, &whole, &whole_used) : hk_unsigned_parse(c->p, left, &natural, &whole_used);
    if (whole_status == HK_NUMBER_RANGE)
      return "an integer does not fit into 64 bits";
    if (whole_status == HK_NUMBER_NONE || whole_used != used)
      return suffix == 'i' ? "an integer has more than digits" : "an unsigned integer has more than digits";
    *value = suffix == 'i' ? (double)whole : (double)natural;
    used++;
  }
  c->p += used;
  return NULL;
}

/* key=value; moves the cursor behind it. */
static const char *read_field(struct cursor *c, struct hk_line *l)
{
  const char *start = c->p, *fault;
  if (token(c, COMMA | EQUALS | SPACE, COMMA | EQUALS | SPACE) != EQUALS)
    return "a field has no value";
  if (c->p == start)
    return "a field's key is empty";
  struct hk_line_point point = { start, (uint32_t)(c->p - start), 0 };
  c->p++;
  const char first = c->p < c->end ? *c->p : 0;
  if (first == '"') {
    fault = line_skip_string(c);
    l->strings++;
  } else {
    fault = (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.' ? read_number(c, &point.value)
                                                                                           : read_boolean(c, &point.value);
    if (!fault && l->n == HK_LINE_FIELDS)
      fault = "too many fields";
    else if (!fault)
      l->points[l->n++] = point;
  }
  if (!fault && c->p < c->end && *c->p != ',' && *c->p != ' ')
    return "there is more behind a field's value";
  return fault;
}

static const char *line_read_time(struct cursor *c, struct hk_line *l)
{
  size_t used;
  int64_t count;
  const int status = hk_integer_parse(c->p, (size_t)(c->end - c->p), &count, &used);
  if (status == HK_NUMBER_NONE)
    return "the time is no whole number";
  if (status == HK_NUMBER_RANGE || __builtin_mul_overflow(count, l->unit, &l->time))
    return "the time does not fit into 64 bits of nanoseconds: is the precision right?";
  c->p += used;
  l->timed = true;
  const char *behind = c->p;
  blanks(c);
  return c->p == c->end ? NULL : behind == c->p ? "the time is no whole number" : "there is more behind the time";
}

/* Checks a piece of a name by the rule of name.h. */
static const char *check_piece(struct cursor *c, const char *piece, size_t length)
{
  size_t fault = 0;
  if (hk_name_piece_valid(piece, length, &fault))
    return NULL;
  c->p = piece + fault;
  return "a control character, or a byte that is not UTF-8, in a name";
}

static bool line_is_value(const char *field, uint32_t length)
{
  return length == 5 && memcmp(field, "value", 5) == 0;
}

/* Checks the names; done last, because most lines are valid. */
static const char *check_names(struct cursor *c, const struct hk_line *l)
{
  static const char too_long[] = "the sensor's name is longer than 512 bytes";
  const char *fault = check_piece(c, l->key, l->key_length);
  if (!fault && l->key_length > HK_NAME_MAX) {
    c->p = l->key;
    fault = too_long;
  }
  for (uint32_t i = 0; i < l->n && !fault; i++) {
    const struct hk_line_point *p = &l->points[i];
    fault = check_piece(c, p->field, p->field_length);
    if (!fault && (size_t)l->key_length + (line_is_value(p->field, p->field_length) ? 0 : 1 + p->field_length) > HK_NAME_MAX) {
      c->p = p->field;
      fault = too_long;
    }
  }
  return fault;
}

static const char *line_read_line(struct cursor *c, struct hk_line *l)
{
  blanks(c);
  if (c->p == c->end || *c->p == '#')
    return NULL;
  l->key = c->p;
  const char *fault = line_read_key(c);
  if (fault)
    return fault;
  l->key_length = (uint32_t)(c->p - l->key);
  blanks(c);
  if (c->p == c->end)
    return "there are no fields";
  for (;;) {
    fault = read_field(c, l);
    if (fault)
      return fault;
    if (c->p == c->end || *c->p == ' ')
      break;
    c->p++; /* the comma */
  }
  blanks(c);
  fault = c->p < c->end ? line_read_time(c, l) : NULL;
  return fault ? fault : check_names(c, l);
}

void hk_line_parse(struct hk_line *l, const char *text, size_t length)
{
  if (length > 0 && text[length - 1] == '\r')
    length--;
  struct cursor c = { text, text + length };
  l->n = l->strings = l->key_length = l->error_byte = 0;
  l->timed = false;
  l->time = 0;
  l->key = text;
  l->error = line_read_line(&c, l);
  if (l->error) {
    l->n = l->strings = 0;
    l->timed = false;
    l->error_byte = (uint32_t)(c.p - text) + 1;
    l->http = hk_line_http(text, length, true);
  }
}

bool hk_line_http(const char *text, size_t length, bool whole)
{
  static const char version[] = " HTTP/1.1";
  enum { VERSION = sizeof version - 1, METHOD_MAX = 20 };
  size_t method = 0;
  if (length > 0 && text[length - 1] == '\r')
    length--;
  while (method < length && method < METHOD_MAX && ((text[method] >= 'A' && text[method] <= 'Z') || text[method] == '-'))
    method++;
  if (method == 0 || length < method + 2 || text[method] != ' ')
    return false;
  if (!whole)
    return text[method + 1] == '/' || text[method + 1] == '*' ||
           (length > method + 5 && memcmp(text + method + 1, "http", 4) == 0);
  const char *end = text + length - VERSION;
  return length > method + 1 + VERSION && memcmp(end, version, VERSION - 3) == 0 && line_digit(end[6]) && end[7] == '.' &&
         line_digit(end[8]);
}

const char *hk_line_join(const char *key, uint32_t key_length, const char *field, uint32_t field_length, char buffer[HK_NAME_MAX],
                         uint32_t *length)
{
  *length = key_length;
  if (line_is_value(field, field_length))
    return key;
  *length += 1 + field_length;
  if (field == key + key_length + 1)
    return key;
  memcpy(buffer, key, key_length);
  buffer[key_length] = ' ';
  memcpy(buffer + key_length + 1, field, field_length);
  return buffer;
}

int64_t hk_precision_parse(const char *text)
{
  static const struct {
    const char *name;
    int64_t ns;
  } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(text, units[i].name) == 0)
      return units[i].ns;
  }
  return 0;
}
