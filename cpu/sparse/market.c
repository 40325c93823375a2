/* Matrix Market files: see market.h. */
#include "cpu/sparse/market.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 63 /* characters of a word */

/* A place in a text. */
struct reader {
  const char *at, *end, *line_from;
  uint32_t line;
  char word[LONGEST + 1]; /* the last word, and its column */
  uint32_t column;
  char *error;
  size_t size;
};

/* What the first line says, and where numbers go. */
struct form {
  bool array, symmetric, skew;
  uint32_t rows, columns, numbers; /* numbers: that follow */
};

struct market_entry {
  uint32_t row, column;
  double value;
};

static int market_complain(const struct reader *r, const char *what)
{
  char shown[LONGEST + 1];
  size_t n = 0;
  for (; r->word[n]; n++)
    shown[n] = (unsigned char)r->word[n] < ' ' || r->word[n] == 127 ? '?' : r->word[n];
  shown[n] = 0;
  snprintf(r->error, r->size, "line %u, column %u: %s%s%s", r->line, r->column, shown, n > 0 ? ": " : "", what);
  return -EINVAL;
}

static int market_no_memory(const struct reader *r)
{
  snprintf(r->error, r->size, "out of memory");
  return -ENOMEM;
}

/* --- words -------------------------------------------------------------------------------------------------------------- */

static bool market_is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

/* Reads the next word of this line. False: there is none, or it is too long, which no number is. */
static bool market_next_word(struct reader *r)
{
  size_t n = 0;
  while (r->at < r->end && market_is_blank(*r->at))
    r->at++;
  r->column = (uint32_t)(r->at - r->line_from) + 1;
  for (; r->at < r->end && !market_is_blank(*r->at) && *r->at != '\n' && n < LONGEST; n++)
    r->word[n] = *r->at++;
  r->word[n] = 0;
  if (memchr(r->word, 0, n)) /* it would end the word, as if what follows were not there */
    memset(r->word, '?', n);
  return n > 0 && (r->at == r->end || market_is_blank(*r->at) || *r->at == '\n');
}

/* Goes to the next line that is neither empty nor a comment. False: there is none. */
static bool market_next_line(struct reader *r)
{
  while (r->at < r->end) {
    r->line_from = r->at;
    r->line++;
    while (r->at < r->end && market_is_blank(*r->at))
      r->at++;
    if (r->at < r->end && *r->at != '%' && *r->at != '\n')
      return true;
    while (r->at < r->end && *r->at != '\n')
      r->at++;
    r->at += r->at < r->end;
  }
  r->word[0] = 0;
  r->column = 1;
  return false;
}

/* Ends a line. */
static int end_line(struct reader *r)
{
  if (market_next_word(r) || r->word[0])
    return market_complain(r, "more than belongs to the line");
  r->at += r->at < r->end;
  return 0;
}

static int market_whole(struct reader *r, const char *what, uint32_t least, uint32_t most, uint32_t *out)
{
  char *end, text[128];
  if (market_next_word(r) && r->word[0] >= '0' && r->word[0] <= '9') {
    errno = 0;
    const unsigned long long is = strtoull(r->word, &end, 10);
    *out = (uint32_t)is;
    if (*end == 0 && errno == 0 && is >= least && is <= most)
      return 0;
  }
  snprintf(text, sizeof text, "not %s, a whole number from %u to %u", what, least, most);
  return market_complain(r, text);
}

static int market_real(struct reader *r, double *out)
{
  char *end;
  if (!market_next_word(r))
    return market_complain(r, "no number");
  *out = strtod(r->word, &end);
  return *end == 0 && isfinite(*out) ? 0 : market_complain(r, "not a finite number");
}

/* --- parts -------------------------------------------------------------------------------------------------------------- */

/* Takes one of some words, without regard to capitals. Returns its number, or n. */
static uint32_t one_of(struct reader *r, const char *const *words, uint32_t n)
{
  uint32_t i = 0;
  if (!market_next_word(r))
    return n;
  for (char *c = r->word; *c; c++)
    *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
  while (i < n && strcmp(r->word, words[i]) != 0)
    i++;
  return i;
}

static int take_head(struct reader *r, struct form *f)
{
  static const char *const begin[] = { "%%matrixmarket" }, *const object[] = { "matrix" },
                           *const format[] = { "coordinate", "array" }, *const field[] = { "real", "double", "integer" },
                           *const symmetry[] = { "general", "symmetric", "skew-symmetric" };
  r->line_from = r->at;
  r->line = 1;
  if (one_of(r, begin, 1) == 1)
    return market_complain(r, "a Matrix Market file begins with %%MatrixMarket matrix coordinate real general, or the like");
  if (one_of(r, object, 1) == 1)
    return market_complain(r, "not a matrix");
  const uint32_t array = one_of(r, format, 2);
  if (array == 2)
    return market_complain(r, "neither coordinate nor array");
  if (one_of(r, field, 3) == 3)
    return market_complain(r, "none of real, double and integer");
  const uint32_t kind = one_of(r, symmetry, 3);
  if (kind == 3)
    return market_complain(r, "none of general, symmetric and skew-symmetric");
  f->array = array == 1;
  f->symmetric = kind > 0;
  f->skew = kind == 2;
  return end_line(r);
}

static int take_size(struct reader *r, struct form *f)
{
  if (!market_next_line(r))
    return market_complain(r, "the file ends before the numbers of rows and columns");
  int status = market_whole(r, "a number of rows", 1, HK_MARKET_SIDE_MAX, &f->rows);
  status = status ? status : market_whole(r, "a number of columns", 1, HK_MARKET_SIDE_MAX, &f->columns);
  if (status == 0 && f->symmetric && f->rows != f->columns)
    return market_complain(r, "a symmetric matrix has as many columns as rows");
  if (status == 0 && !f->array)
    status = market_whole(r, "a number of entries", 0, HK_MARKET_NUMBERS_MAX / (f->symmetric ? 2 : 1), &f->numbers);
  if (status == 0 && f->array) {
    const uint64_t n = f->rows, all = !f->symmetric ? n * f->columns : n * (n + 1) / 2 - (f->skew ? n : 0);
    if (n * f->columns > HK_MARKET_NUMBERS_MAX)
      return market_complain(r, "the matrix has over 67108864 numbers");
    f->numbers = (uint32_t)all;
  }
  return status ? status : end_line(r);
}

/* Reads the entry k of the file. *to: the last place of an array. */
static int take_entry(struct reader *r, const struct form *f, struct market_entry *to)
{
  int status = 0;
  if (!market_next_line(r))
    return market_complain(r, "the file ends before its last entry");
  if (f->array) { /* column by column */
    if (++to->row > f->rows)
      to->row = f->symmetric ? ++to->column + f->skew : (++to->column, 1);
  } else {
    status = market_whole(r, "a row", 1, f->rows, &to->row);
    status = status ? status : market_whole(r, "a column", 1, f->columns, &to->column);
    if (status == 0 && f->symmetric && (to->row < to->column || (f->skew && to->row == to->column)))
      return market_complain(r, "a symmetric matrix is given by its lower triangle");
  }
  status = status ? status : market_real(r, &to->value);
  return status ? status : end_line(r);
}

static int take_entries(struct reader *r, const struct form *f, struct market_entry *entry, uint32_t *n)
{
  /* the place before the first one of an array */
  struct market_entry is = { f->array && f->skew ? 1 : 0, 1, 0 };
  for (uint32_t k = 0; k < f->numbers; k++) {
    const int status = take_entry(r, f, &is);
    if (status != 0)
      return status;
    entry[(*n)++] = (struct market_entry){ is.row - 1, is.column - 1, is.value };
    if (f->symmetric && is.row != is.column)
      entry[(*n)++] = (struct market_entry){ is.column - 1, is.row - 1, f->skew ? -is.value : is.value };
  }
  return market_next_line(r) ? (void)market_next_word(r), market_complain(r, "more entries than the file says") : 0;
}

/* --- rows --------------------------------------------------------------------------------------------------------------- */

/* Sorts by rows, and puts each entry behind those of its row: columns ascend if they did. Returns whether they do. */
static void by_row(struct hk_market *m, const struct market_entry *entry, uint32_t n)
{
  for (uint32_t k = 0; k < n; k++)
    m->at[entry[k].row + 1]++;
  for (uint32_t i = 0; i < m->rows; i++)
    m->at[i + 1] += m->at[i];
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t to = m->at[entry[k].row]++;
    m->column[to] = entry[k].column;
    m->value[to] = entry[k].value;
  }
  for (uint32_t i = m->rows; i > 0; i--) /* each has become the begin of the next one */
    m->at[i] = m->at[i - 1];
  m->at[0] = 0;
}

static int by_column(const void *a, const void *b)
{
  const struct market_entry *x = a, *y = b;
  if (x->column != y->column)
    return x->column < y->column ? -1 : 1;
  return (x->row > y->row) - (x->row < y->row); /* the order in the file, so that sums do not depend on how it is sorted */
}

/* Sorts the columns of each row, and adds what stands in one place. row: memory for the longest one. */
static void market_merge(struct hk_market *m, struct market_entry *row)
{
  uint32_t to = 0;
  for (uint32_t i = 0, from = 0; i < m->rows; i++) {
    const uint32_t end = m->at[i + 1], n = end - from;
    bool sorted = true;
    for (uint32_t k = 0; k < n; k++) {
      row[k] = (struct market_entry){ k, m->column[from + k], m->value[from + k] };
      sorted = sorted && (k == 0 || row[k - 1].column < row[k].column);
    }
    if (!sorted)
      qsort(row, n, sizeof *row, by_column);
    for (uint32_t k = 0; k < n; k++)
      if (k > 0 && row[k].column == row[k - 1].column) {
        m->value[to - 1] += row[k].value;
      } else {
        m->column[to] = row[k].column;
        m->value[to++] = row[k].value;
      }
    from = end;
    m->at[i + 1] = to;
  }
}

static int make_rows(struct hk_market *m, const struct reader *r, struct market_entry *entry, uint32_t n)
{
  m->at = calloc((size_t)m->rows + 1, sizeof *m->at);
  m->column = malloc(((size_t)n + 1) * sizeof *m->column);
  m->value = malloc(((size_t)n + 1) * sizeof *m->value);
  if (!m->at || !m->column || !m->value)
    return market_no_memory(r);
  by_row(m, entry, n);
  market_merge(m, entry);
  for (uint32_t k = 0; k < m->at[m->rows]; k++)
    if (!isfinite(m->value[k])) {
      snprintf(r->error, r->size, "entries of one place have a sum that is not finite");
      return -EINVAL;
    }
  return 0;
}

int hk_market_parse(struct hk_market *out, const char *text, size_t length, char *error, size_t size)
{
  struct reader r = { .at = text, .end = text + length, .error = error, .size = size };
  struct form f = { 0 };
  uint32_t n = 0;
  *out = (struct hk_market){ 0 };
  int status = take_head(&r, &f);
  status = status ? status : take_size(&r, &f);
  if (status == 0 && f.numbers > length / 2) { /* each takes a line, so that no file asks for more memory than it has bytes */
    r.word[0] = 0;
    status = market_complain(&r, "the file is too short for its number of entries");
  }
  struct market_entry *entry = status == 0 ? malloc(((f.symmetric ? 2 : 1) * (size_t)f.numbers + 1) * sizeof *entry) : NULL;
  if (status == 0 && !entry)
    status = market_no_memory(&r);
  if (status == 0)
    status = take_entries(&r, &f, entry, &n);
  out->rows = f.rows;
  out->columns = f.columns;
  if (status == 0)
    status = make_rows(out, &r, entry, n);
  free(entry);
  if (status != 0)
    hk_market_free(out);
  return status;
}

void hk_market_free(struct hk_market *m)
{
  free(m->at);
  free(m->column);
  free(m->value);
  *m = (struct hk_market){ 0 };
}

/* --- questions ---------------------------------------------------------------------------------------------------------- */

uint32_t hk_market_place(const struct hk_market *m, uint32_t row, uint32_t column)
{
  uint32_t low = m->at[row], high = m->at[row + 1];
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (m->column[middle] == column)
      return middle;
    if (m->column[middle] < column)
      low = middle + 1;
    else
      high = middle;
  }
  return UINT32_MAX;
}

double hk_market_times(const struct hk_market *m, uint32_t row, const double *x)
{
  double sum = 0;
  for (uint32_t k = m->at[row]; k < m->at[row + 1]; k++)
    sum += m->value[k] * x[m->column[k]];
  return sum;
}
