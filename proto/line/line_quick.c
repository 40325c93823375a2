/* Parses ordinary lines fast. See line.h.
 *
 * The delimiters in 64 bytes are found at once and kept as bits; the parser then moves from one to the next. Numbers are read
 * eight digits at a time. Everything unusual, including errors, is left to hk_line_parse: this file has no error messages, and
 * accepts only what hk_line_parse would parse with the same result. */
#include "proto/line/line_quick.h"
#include "proto/line/digits.h"
#include "proto/line/line.h"
#include "proto/line/number.h"

#if defined(__x86_64__) && !defined(HK_PLAIN_C)
#include <emmintrin.h>
#endif

#define likely(x) __builtin_expect(!!(x), 1)

/* A window of 64 bytes. */
struct window {
  const char *base;
  uint64_t stops;   /* bit i: base[i] is a comma, equals sign, space, backslash or LF, not processed yet */
  uint64_t unusual; /* bit i: base[i] is a control character or not ASCII */
  bool seen;        /* an earlier window had an unusual byte */
};

/* Sets the bits of the 16 bytes at p. */
static inline uint64_t look_16(const char *p, uint64_t *unusual)
{
#if defined(__x86_64__) && !defined(HK_PLAIN_C)
  const __m128i x = _mm_loadu_si128((const __m128i *)p);
  const __m128i comma = _mm_cmpeq_epi8(x, _mm_set1_epi8(',')), equals = _mm_cmpeq_epi8(x, _mm_set1_epi8('=')),
                space = _mm_cmpeq_epi8(x, _mm_set1_epi8(' ')), backslash = _mm_cmpeq_epi8(x, _mm_set1_epi8('\\')),
                lf = _mm_cmpeq_epi8(x, _mm_set1_epi8('\n')), del = _mm_cmpeq_epi8(x, _mm_set1_epi8(0x7f)),
                below = _mm_cmplt_epi8(x, _mm_set1_epi8(' ')); /* signed: bytes over 0x7f are negative */
  const __m128i stops = _mm_or_si128(_mm_or_si128(_mm_or_si128(comma, equals), _mm_or_si128(space, backslash)), lf);
  *unusual = (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, del));
  return (uint32_t)_mm_movemask_epi8(stops);
#else
  uint64_t stops = 0, odd = 0;
  for (unsigned i = 0; i < 16; i++) {
    const uint8_t c = (uint8_t)p[i];
    stops |= (uint64_t)(c == ',' || c == '=' || c == ' ' || c == '\\' || c == '\n') << i;
    odd |= (uint64_t)(c < ' ' || c >= 0x7f) << i;
  }
  *unusual = odd;
  return stops;
#endif
}

static inline void look(struct window *w, const char *base)
{
  uint64_t odd[4];
  w->stops = look_16(base, &odd[0]) | look_16(base + 16, &odd[1]) << 16 | look_16(base + 32, &odd[2]) << 32 |
             look_16(base + 48, &odd[3]) << 48;
  w->unusual = odd[0] | odd[1] << 16 | odd[2] << 32 | odd[3] << 48;
  w->base = base;
}

static inline void look_on(struct window *w)
{
  w->seen |= w->unusual != 0;
  look(w, w->base + 64);
}

/* Continues at p, which is ahead. */
static void jump(struct window *w, const char *p)
{
  while (p - w->base >= 64)
    look_on(w);
  w->stops &= ~0ull << (p - w->base);
}

/* Returns the next unescaped stop. There must be an unprocessed LF. */
static inline __attribute__((always_inline)) const char *next(struct window *w)
{
  for (;;) {
    while (!w->stops)
      look_on(w);
    const char *p = w->base + __builtin_ctzll(w->stops);
    w->stops &= w->stops - 1;
    if (likely(*p != '\\'))
      return p;
    if (p[1] == ',' || p[1] == '=' || p[1] == ' ')
      jump(w, p + 2);
  }
}

/* Parses text[0..n-1] as any number or a boolean, if it is not a plain decimal number. */
static bool read_other(const char *text, size_t n, double *value)
{
  const char last = n > 0 ? text[n - 1] : 0;
  size_t used;
  int64_t whole;
  uint64_t natural;
  if (last == 'i' && hk_integer_parse(text, n - 1, &whole, &used) == 0 && used == n - 1) {
    *value = (double)whole;
    return true;
  }
  if (last == 'u' && hk_unsigned_parse(text, n - 1, &natural, &used) == 0 && used == n - 1) {
    *value = (double)natural;
    return true;
  }
  return (hk_number_parse(text, n, value, &used) == 0 && used == n) || hk_line_boolean(text, n, value);
}

/* Parses the number or boolean that ends at `end`; eight bytes after `end` must be readable. */
static inline bool read_value(const char *text, const char *end, double *value)
{
  const bool negative = *text == '-';
  const char *const first = text + negative, *p = first, *point = NULL;
  uint64_t m = 0;
  while (hk_digits_take(&p, &m))
    ;
  if (*p == '.') {
    point = p++;
    while (hk_digits_take(&p, &m))
      ;
  }
  const size_t digits = (size_t)(p - first) - (point != NULL);
  if (digits > 0 && digits <= 19 && p == end) { /* up to 19 fit into 64 bits */
    const size_t places = point ? (size_t)(p - point - 1) : 0;
    const double x = likely(m <= 1ull << 53) ? (double)(int64_t)m / hk_ten_to[places] /* both are exact: rounded once */
                                             : hk_number_scale(m, -(int)places);
    *value = negative ? -x : x;
    return true;
  }
  if (digits > 0 && digits <= 18 && !point && p + 1 == end && (*p == 'i' || (*p == 'u' && !negative))) {
    *value = (double)(negative ? -(int64_t)m : (int64_t)m);
    return true;
  }
  return read_other(text, (size_t)(end - text), value);
}

/* Returns the end of the string that begins at p; NULL if it has a backslash or no end. */
static const char *skip_string(const char *p)
{
  for (p++; *p != '"'; p++) {
    if (*p == '\\' || *p == '\n')
      return NULL;
  }
  return p + 1;
}

static bool names_valid(const struct hk_line *l)
{
  bool valid = l->key_length <= HK_NAME_MAX && hk_name_piece_valid(l->key, l->key_length, NULL);
  for (uint32_t i = 0; i < l->n && valid; i++) {
    const struct hk_line_point *p = &l->points[i];
    valid = l->key_length + 1 + p->field_length <= HK_NAME_MAX && hk_name_piece_valid(p->field, p->field_length, NULL);
  }
  return valid;
}

/* measurement[,tag=value...]; returns its end, or NULL. */
static inline const char *read_key(struct window *w, const char *text)
{
  const char *p = next(w);
  if (p == text || *text == '#')
    return NULL;
  while (*p == ',') {
    const char *const tag = p + 1, *const equals = next(w);
    if (*equals != '=' || equals == tag)
      return NULL;
    p = next(w);
    if (p == equals + 1)
      return NULL;
  }
  return *p == ' ' ? p : NULL;
}

/* key=value[,key=value...] after p; returns its end, or NULL. */
static inline const char *read_fields(struct window *w, struct hk_line *l, const char *p)
{
  do {
    const char *const field = p + 1, *const equals = next(w), *const value = equals + 1;
    if (*equals != '=' || equals == field || l->n == HK_LINE_FIELDS)
      return NULL;
    if (*value == '"') {
      const char *const behind = skip_string(value);
      if (!behind)
        return NULL;
      jump(w, behind);
      p = next(w);
      if (p != behind)
        return NULL;
      l->strings++;
    } else {
      struct hk_line_point *point = &l->points[l->n];
      p = next(w);
      point->field = field;
      point->field_length = (uint32_t)(equals - field);
      if (!read_value(value, p, &point->value))
        return NULL;
      l->n++;
    }
  } while (*p == ',');
  return p;
}

size_t hk_line_quick(struct hk_line *l, const char *text)
{
  struct window w = { 0 };
  look(&w, text);
  l->n = l->strings = l->error_byte = 0;
  l->error = NULL;
  l->key = text;
  const char *p = read_key(&w, text);
  if (!p)
    return 0;
  l->key_length = (uint32_t)(p - text);
  p = read_fields(&w, l, p);
  if (!p)
    return 0;
  l->timed = *p == ' ';
  l->time = 0;
  if (l->timed) {
    const char *const first = p + 1, *digit = first;
    uint64_t count = 0;
    hk_digits_take_16(&digit, &count);
    while (hk_digits_take(&digit, &count))
      ;
    p = next(&w);
    if (digit != p || digit == first || digit - first > 19 || count > INT64_MAX ||
        __builtin_mul_overflow((int64_t)count, l->unit, &l->time))
      return 0;
  }
  const size_t size = (size_t)(p - text);
  const uint64_t of_line = ~(~0ull << (p - w.base));
  if (*p != '\n' || ((w.seen || (w.unusual & of_line) || size > HK_NAME_MAX) && !names_valid(l)))
    return 0;
  return size + 1;
}
