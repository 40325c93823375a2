/* Sheets of plots: see svg_sheet.h. Curves are outlines of the highest and lowest value in each of at most COLUMNS columns, in
 * whole units, and written as steps from one column to the next: so a sheet of a hundred recordings is small enough to be
 * kept. */
#include "daemon/cli/svg_sheet.h"

#include <errno.h>
#include <math.h>

#define ABREAST 3
#define COLUMNS 380 /* width of a plot */
#define GUTTER 20   /* between plots */
#define NAME 14     /* heights: of the name above the series, */
#define SERIES 56   /* of the series, */
#define STRIP 24    /* of a score with the space above it, */
#define SCORE 20    /* without it, */
#define BELOW 12    /* of what is left below a plot, */
#define LINE 16     /* and of a line of text at the top */
#define FINE 4      /* units of heights, to a unit of the sheet */

static const char *const colours[HK_SHEET_DETECTORS] = { "#1f77b4", "#d62728", "#9467bd", "#ff7f0e",
                                                         "#17becf", "#8c564b", "#e377c2", "#7f7f7f" };

static void escaped(FILE *file, const char *text)
{
  for (; *text; text++) {
    if (*text == '&' || *text == '<' || *text == '>')
      fprintf(file, "&#%d;", *text);
    else
      fputc(*text, file);
  }
}

static uint32_t plot_height(const struct hk_sheet *sheet)
{
  return NAME + SERIES + sheet->detectors * STRIP + BELOW;
}

static uint32_t head_height(const struct hk_sheet *sheet)
{
  return (sheet->detectors + 2) * LINE;
}

/* Begins a group whose origin is `down` below the top of plot i. */
static void svg_sheet_place(const struct hk_sheet *sheet, uint32_t i, uint32_t down)
{
  fprintf(sheet->file, "<g transform='translate(%u,%u)'>", GUTTER + i % ABREAST * (COLUMNS + GUTTER),
          head_height(sheet) + i / ABREAST * plot_height(sheet) + down);
}

int hk_sheet_open(struct hk_sheet *sheet, const char *path, const char *title, uint32_t recordings, const char *const *keys,
                  uint32_t detectors)
{
  FILE *file = fopen(path, "w");
  if (!file)
    return -errno;
  *sheet = (struct hk_sheet){ file, recordings, detectors };
  const uint32_t width = GUTTER + ABREAST * (COLUMNS + GUTTER);
  const uint32_t height = head_height(sheet) + (recordings + ABREAST - 1) / ABREAST * plot_height(sheet);
  fprintf(file,
          "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %u %u' width='%u' height='%u' "
          "font-family='Helvetica,Arial,sans-serif' "
          "font-size='11' fill='#333'>\n<rect width='%u' height='%u' fill='#fff'/>\n"
          "<text x='%u' y='14' font-weight='bold'>",
          width, height, width, height, width, height, GUTTER);
  escaped(file, title);
  fprintf(file,
          "</text><text x='%u' y='14' text-anchor='end'>green: labelled; coloured: a change, as an alert tells it; strips: "
          "scores, 0 to 1</text>\n",
          width - GUTTER);
  for (uint32_t i = 0; i < detectors; i++) {
    fprintf(file, "<text x='%u' y='%u' fill='%s'>", GUTTER, 14 + (i + 1) * LINE, colours[i]);
    escaped(file, *keys[i] ? keys[i] : "default");
    fputs("</text>\n", file);
  }
  return 0;
}

/* Columns that n numbers fall into. */
static uint32_t svg_sheet_columns_of(uint32_t n)
{
  return n < COLUMNS ? n : COLUMNS;
}

/* Steps along a curve, each `way` to the side: consecutive steps that go neither up nor down are written as one. */
static void svg_sheet_steps(FILE *file, const int *curve, uint32_t from, uint32_t to)
{
  const int way = to > from ? 1 : -1;
  int level = 0;
  for (uint32_t c = from; c != to; c += (uint32_t)way) {
    const int rise = curve[c + (uint32_t)way] - curve[c];
    level += way;
    if (rise == 0 && c + (uint32_t)way != to)
      continue;
    if (level != way)
      fprintf(file, "%d 0 ", rise == 0 ? level : level - way);
    if (rise != 0 || level == way)
      fprintf(file, rise < 0 ? "%d%d " : "%d %d ", way, rise);
    level = 0;
  }
}

/* The outline of a curve: columns of high[] and, back again, low[], in units down from the top. */
static void outline(FILE *file, const int *high, const int *low, uint32_t columns, uint32_t height, const char *colour)
{
  fprintf(
      file,
      "<path transform='scale(%.4g,%.4g)' fill='%s' stroke='%s' stroke-width='.6' vector-effect='non-scaling-stroke' d='M0 %dl",
      (double)COLUMNS / columns, 1.0 / FINE, colour, colour, high[0]);
  svg_sheet_steps(file, high, 0, columns - 1);
  fprintf(file, "0 %d ", low[columns - 1] - high[columns - 1]);
  svg_sheet_steps(file, low, columns - 1, 0);
  fprintf(file, "z'/><path d='M0 %uh%u' stroke='#ccc' stroke-width='.5'/>\n", height, COLUMNS);
}

void hk_sheet_series(struct hk_sheet *sheet, uint32_t i, const char *name, const double *value, uint32_t n,
                     const struct hk_marked *marked, uint32_t n_marked)
{
  svg_sheet_place(sheet, i, NAME);
  fputs("<text y='-3'>", sheet->file);
  escaped(sheet->file, name);
  fputs("</text>\n", sheet->file);
  const double unit = n > 1 ? (double)COLUMNS / n : COLUMNS;
  for (uint32_t m = 0; m < n_marked; m++)
    fprintf(sheet->file, "<rect x='%.1f' width='%.1f' height='%u' fill='#2ca02c' fill-opacity='.4'/>\n",
            marked[m].first * unit - 1, (marked[m].last - marked[m].first) * unit + 2, SERIES + sheet->detectors * STRIP);
  if (value && n > 0) {
    double least = INFINITY, most = -INFINITY;
    for (uint32_t t = 0; t < n; t++) {
      least = fmin(least, value[t]);
      most = fmax(most, value[t]);
    }
    const double scale = most > least ? SERIES * FINE / (most - least) : 0;
    int high[COLUMNS], low[COLUMNS];
    const uint32_t columns = svg_sheet_columns_of(n);
    for (uint32_t c = 0; c < columns; c++) {
      const uint32_t first = (uint32_t)((uint64_t)c * n / columns), end = (uint32_t)((uint64_t)(c + 1) * n / columns);
      double top = value[first], bottom = top;
      for (uint32_t t = first + 1; t < end; t++) {
        top = fmax(top, value[t]);
        bottom = fmin(bottom, value[t]);
      }
      high[c] = (int)lround((most - top) * scale);
      low[c] = (int)lround((most - bottom) * scale);
    }
    outline(sheet->file, high, low, columns, SERIES, "#333");
  }
  fputs("</g>\n", sheet->file);
}

void hk_sheet_score(struct hk_sheet *sheet, uint32_t i, uint32_t detector, const float *score, uint32_t n,
                    const struct hk_found *found, uint32_t n_found)
{
  const uint32_t down = SERIES + (detector + 1) * STRIP;
  if (n == 0)
    return;
  svg_sheet_place(sheet, i, NAME + down - SCORE);
  int high[COLUMNS], low[COLUMNS];
  const uint32_t columns = svg_sheet_columns_of(n);
  for (uint32_t c = 0; c < columns; c++) {
    const uint32_t first = (uint32_t)((uint64_t)c * n / columns), end = (uint32_t)((uint64_t)(c + 1) * n / columns);
    float top = 0;
    for (uint32_t t = first; t < end; t++)
      top = fmaxf(top, score[t]); /* of a number and NaN the number */
    high[c] = SCORE * FINE - (int)lround((double)top * SCORE * FINE);
    low[c] = SCORE * FINE;
  }
  outline(sheet->file, high, low, columns, SCORE, colours[detector]);
  fprintf(sheet->file, "<path stroke='%s' stroke-width='.9' d='", colours[detector]);
  for (uint32_t f = 0; f < n_found; f++) /* over the series and its own strip */
    fprintf(sheet->file, "M%.1f %dv%uM%.1f 0v%u", found[f].instant * (double)COLUMNS / n, (int)SCORE - (int)down, SERIES,
            found[f].instant * (double)COLUMNS / n, SCORE);
  fputs("'/></g>\n", sheet->file);
}

int hk_sheet_close(struct hk_sheet *sheet)
{
  fputs("</svg>\n", sheet->file);
  const bool failed = ferror(sheet->file) != 0;
  const int status = fclose(sheet->file) != 0 ? -errno : failed ? -EIO : 0;
  *sheet = (struct hk_sheet){ 0 };
  return status;
}
