#include "daemon/base/template.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define CONTEXTS (2 + HK_TEMPLATE_DEPTH)

enum kind { TEXT, VALUE, RAW, SECTION, INVERTED, CLOSE, COMMENT, END, FAULT };

/* A piece of a template: text between tags, or a tag with its name. */
struct piece {
  enum kind kind;
  const char *at, *end; /* of the text, or of the name without blanks */
  const char *tag;      /* where its braces begin */
  const char *why;      /* FAULT */
};

static bool template_is_blank(char c)
{
  return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
  return template_is_blank(c) || c == '\n' || c == '\r';
}

/* A tag [tag, end) alone on its line: true, and the line is [*from, *to). */
static bool stands_alone(const char *text, const char *tag, const char *end, const char **from, const char **to)
{
  while (tag > text && template_is_blank(tag[-1]))
    tag--;
  if (tag > text && tag[-1] != '\n')
    return false;
  while (template_is_blank(*end))
    end++;
  if (end[0] == '\r' && end[1] == '\n')
    end++;
  if (*end != 0 && *end != '\n')
    return false;
  *from = tag;
  *to = end + (*end == '\n');
  return true;
}

static struct piece template_fault(const char *tag, const char *why)
{
  return (struct piece){ .kind = FAULT, .tag = tag, .why = why };
}

/* name: . or letters, digits and _, with dots between them */
static bool template_is_name(const char *at, const char *end)
{
  if (end - at == 1 && *at == '.')
    return true;
  bool begun = false;
  for (; at < end; at++) {
    const bool word = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_';
    if (!word && (*at != '.' || !begun))
      return false;
    begun = word;
  }
  return begun;
}

/* The tag that begins there; *next: behind it. */
static struct piece read_tag(const char *tag, const char **next)
{
  static const struct {
    char mark;
    enum kind kind;
  } kinds[] = { { '#', SECTION }, { '^', INVERTED }, { '/', CLOSE }, { '!', COMMENT }, { '&', RAW }, { '{', RAW } };
  const char *at = tag + 2;
  struct piece p = { .kind = VALUE, .tag = tag };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (*at == kinds[i].mark)
      p.kind = kinds[i].kind;
  const bool tripled = *at == '{';
  if (*at == '>' || *at == '=')
    return template_fault(tag, *at == '>' ? "{{> partials are not known here" : "{{= other delimiters are not known here");
  at += p.kind != VALUE;
  const char *end = strstr(at, tripled ? "}}}" : "}}");
  if (!end)
    return template_fault(tag, tripled ? "{{{ without }}}" : "{{ without }}");
  *next = end + (tripled ? 3 : 2);
  while (at < end && is_space(*at))
    at++;
  while (end > at && is_space(end[-1]))
    end--;
  p.at = at;
  p.end = end;
  if (p.kind != COMMENT && !template_is_name(at, end))
    return template_fault(tag, at == end ? "a tag without a name" : "a name has letters, digits and _, with dots between them");
  return p;
}

/* The next piece from *at on, which moves behind it. text: the whole template. */
static struct piece next_piece(const char *text, const char **at)
{
  const char *tag = strstr(*at, "{{"), *next = NULL, *from, *to;
  if (!tag)
    tag = *at + strlen(*at);
  struct piece p = { .kind = END, .tag = tag };
  if (*tag)
    p = read_tag(tag, &next);
  from = tag;
  if (p.kind >= SECTION && p.kind <= COMMENT && stands_alone(text, tag, next, &from, &to))
    next = to;
  if (from > *at) { /* the tag comes with the next call */
    p = (struct piece){ .kind = TEXT, .at = *at, .end = from, .tag = *at };
    *at = from;
    return p;
  }
  if (p.kind != END && p.kind != FAULT)
    *at = next;
  return p;
}

/* --- checking ----------------------------------------------------------------------------------------------------------- */

static void template_place(const char *text, const char *at, struct hk_template_fault *f)
{
  f->line = f->column = 1;
  for (; text < at; text++) {
    if (*text == '\n') {
      f->line++;
      f->column = 1;
    } else if (((unsigned char)*text & 0xc0) != 0x80) {
      f->column++;
    }
  }
}

static bool template_same(const struct piece *a, const struct piece *b)
{
  return a->end - a->at == b->end - b->at && memcmp(a->at, b->at, (size_t)(a->end - a->at)) == 0;
}

static bool template_is_known(const struct piece *p, const char *const *names)
{
  const size_t length = (size_t)(p->end - p->at);
  if (!names || (length == 1 && *p->at == '.'))
    return true;
  for (; *names; names++) {
    const size_t n = strlen(*names);
    if ((n == length || ((*names)[n - 1] == '.' && n < length)) && memcmp(*names, p->at, n) == 0)
      return true;
  }
  return false;
}

static int template_complain(const char *text, const char *at, struct hk_template_fault *f, const char *why,
                             const struct piece *name)
{
  template_place(text, at, f);
  if (name)
    snprintf(f->why, sizeof f->why, "%.64s `%.*s`", why, (int)(name->end - name->at < 48 ? name->end - name->at : 48), name->at);
  else
    snprintf(f->why, sizeof f->why, "%.100s", why);
  return -EINVAL;
}

int hk_template_check(const char *text, const char *const *names, struct hk_template_fault *f)
{
  struct piece open[HK_TEMPLATE_DEPTH];
  uint32_t depth = 0;
  for (const char *at = text;;) {
    const struct piece p = next_piece(text, &at);
    switch (p.kind) {
    case FAULT:
      return template_complain(text, p.tag, f, p.why, NULL);
    case END:
      return depth == 0 ? 0 : template_complain(text, open[depth - 1].tag, f, "a section is not closed:", &open[depth - 1]);
    case CLOSE:
      if (depth == 0)
        return template_complain(text, p.tag, f, "closes a section that is not open:", &p);
      if (!template_same(&p, &open[--depth]))
        return template_complain(text, p.tag, f, "the section to close here is", &open[depth]);
      break;
    case SECTION:
    case INVERTED:
      if (depth == HK_TEMPLATE_DEPTH)
        return template_complain(text, p.tag, f, "more than 8 sections in each other:", &p);
      open[depth++] = p;
      /* fall through */
    case VALUE:
    case RAW:
      if (!template_is_known(&p, names))
        return template_complain(text, p.tag, f, "no such name:", &p);
      break;
    default:
      break;
    }
  }
}

/* --- rendering ---------------------------------------------------------------------------------------------------------- */

struct run {
  const char *text;
  const cJSON *context[CONTEXTS];
  uint32_t n;
  hk_template_escape *escape;
  size_t most; /* that out may hold */
  struct hk_buffer *out;
};

static const cJSON *template_member(const cJSON *object, const char *at, const char *end)
{
  const cJSON *item;
  if (cJSON_IsObject(object))
    cJSON_ArrayForEach(item, object) if (strlen(item->string) == (size_t)(end - at) &&
                                         memcmp(item->string, at, (size_t)(end - at)) == 0) return item;
  return NULL;
}

/* What a name stands for: its first part is looked for from the innermost context outwards, the others in that. */
static const cJSON *template_find(const struct run *r, const struct piece *p)
{
  if (p->end - p->at == 1 && *p->at == '.')
    return r->context[r->n - 1];
  const char *dot = memchr(p->at, '.', (size_t)(p->end - p->at)), *end = dot ? dot : p->end;
  const cJSON *found = NULL;
  for (uint32_t i = r->n; i-- > 0 && !found;)
    found = template_member(r->context[i], p->at, end);
  while (found && end < p->end) {
    const char *at = end + 1;
    dot = memchr(at, '.', (size_t)(p->end - at));
    end = dot ? dot : p->end;
    found = template_member(found, at, end);
  }
  return found;
}

static bool is_true(const cJSON *v)
{
  return v && !cJSON_IsFalse(v) && !cJSON_IsNull(v) && !(cJSON_IsNumber(v) && v->valuedouble == 0) &&
         !(cJSON_IsString(v) && v->valuestring[0] == 0) && !(cJSON_IsArray(v) && !v->child);
}

static void put_value(const struct run *r, const cJSON *v, bool raw)
{
  char number[40], *printed = NULL;
  const char *text = "";
  if (cJSON_IsString(v)) {
    text = v->valuestring;
  } else if (cJSON_IsNumber(v)) { /* for people: a count whole, a measurement as exactly as it is worth reading */
    const double x = v->valuedouble;
    const bool whole = x == floor(x) && fabs(x) < 9e15; /* not written as -0 */
    snprintf(number, sizeof number, whole ? "%.0f" : "%.6g", x == 0 ? 0 : x);
    text = number;
  } else if (v && !cJSON_IsNull(v)) {
    text = printed = cJSON_PrintUnformatted(v);
    r->out->failed |= !printed;
  }
  if (text)
    (raw ? hk_buffer_put : r->escape)(r->out, text, strlen(text));
  cJSON_free(printed);
}

static const char *put_block(struct run *r, const char *at, bool quiet);

/* The content of a section, as often as its value says; returns what is behind its end. */
static const char *put_section(struct run *r, const struct piece *p, const char *at, bool quiet)
{
  const cJSON *value = quiet ? NULL : template_find(r, p), *item;
  const bool wanted = !quiet && is_true(value) == (p->kind == SECTION) && r->n < CONTEXTS;
  const char *end = NULL;
  if (wanted && p->kind == SECTION && cJSON_IsArray(value)) {
    cJSON_ArrayForEach(item, value)
    {
      r->context[r->n++] = item;
      end = put_block(r, at, false);
      r->n--;
      if (r->out->failed || r->out->size > r->most)
        break;
    }
  } else if (wanted && p->kind == SECTION) {
    r->context[r->n++] = value;
    end = put_block(r, at, false);
    r->n--;
  } else {
    end = put_block(r, at, !wanted);
  }
  return end;
}

/* Up to the end of the section that it is in; returns what is behind that. */
static const char *put_block(struct run *r, const char *at, bool quiet)
{
  for (;;) {
    const struct piece p = next_piece(r->text, &at);
    if (p.kind == END || p.kind == FAULT || r->out->failed || r->out->size > r->most)
      return r->text + strlen(r->text);
    if (p.kind == CLOSE)
      return at;
    if (p.kind == SECTION || p.kind == INVERTED)
      at = put_section(r, &p, at, quiet);
    else if (p.kind == TEXT && !quiet)
      hk_buffer_put(r->out, p.at, (size_t)(p.end - p.at));
    else if ((p.kind == VALUE || p.kind == RAW) && !quiet)
      put_value(r, template_find(r, &p), p.kind == RAW);
  }
}

int hk_template_render(const char *text, const cJSON *const *context, uint32_t n, hk_template_escape *escape, size_t most,
                       struct hk_buffer *out)
{
  struct run r = { .text = text, .n = n, .escape = escape, .most = out->size + most, .out = out };
  memcpy(r.context, context, n * sizeof *context);
  (void)put_block(&r, text, false);
  return out->failed ? -ENOMEM : out->size > r.most ? -EMSGSIZE : 0;
}
