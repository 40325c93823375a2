/* Examines a plain file before its first point is returned. Remembers errors by line, because the first one is reported. */
#include "daemon/cli/csv_survey.h"
#include "daemon/cli/csv_row.h"
#include "daemon/cli/csv_tell.h"
#include "proto/wire/name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 256

/* The kinds of cells in a column. */
struct seen {
  uint64_t numbers, words, line; /* line: of the first word */
  char word[HK_CSV_CELL_SHOWN];
};

struct survey {
  struct hk_csv *csv;
  struct seen *seen; /* of each sensor's column */
  unsigned decimal;  /* a sum of enum hk_decimal_seen */
  char either[HK_CSV_CELL_SHOWN];
  char of[HK_CSV_CELL_SHOWN]; /* long recordings: the sensor of the first word */
  struct hk_csv_votes votes;
  uint64_t points, up[HK_DATE_ORDERS], down[HK_DATE_ORDERS]; /* by order of dates: ascending and descending times */
  uint64_t down_line[HK_DATE_ORDERS];                        /* line of the first descending time */
  int64_t last[HK_DATE_ORDERS];
  bool any;
  uint64_t wrong_line; /* 0: nothing is */
  char wrong[512];
};

static void csv_survey_wrong(struct survey *survey, const char *error, uint64_t line)
{
  if (survey->wrong_line > 0 && survey->wrong_line <= line)
    return;
  survey->wrong_line = line;
  snprintf(survey->wrong, sizeof survey->wrong, "%s", error);
}

/* Counts whether times ascend, for each possible order of dates. */
static void csv_survey_follow(struct survey *survey, uint64_t line)
{
  const struct hk_csv_votes *votes = &survey->votes;
  for (int order = 0; order < HK_DATE_ORDERS; order++) {
    const int64_t ns = votes->ns[order];
    if (!votes->fits[order])
      continue;
    if (survey->any && ns < survey->last[order] && survey->down[order]++ == 0)
      survey->down_line[order] = line;
    survey->up[order] += survey->any && ns > survey->last[order];
    survey->last[order] = ns;
  }
  survey->any = true;
}

static void look_at_time(struct survey *survey, char *error, size_t size)
{
  struct hk_csv *csv = survey->csv;
  const uint64_t line = hk_csv_lines_number(csv->lines);
  char joined[HK_CSV_JOINED];
  if (csv->columns.time == HK_NO_COLUMN || csv->config.now)
    return;
  const char *cell = hk_csv_time_cell(csv, joined);
  if (hk_csv_time_vote(&survey->votes, &csv->times, cell, line)) {
    csv_survey_follow(survey, line);
    return;
  }
  struct hk_csv_times times = csv->times;
  int64_t ns;
  times.known = true;
  const int status = hk_csv_time_read(&times, cell, &ns);
  if (hk_csv_wrong_time(csv, status, cell, error, size) < 0)
    csv_survey_wrong(survey, error, line);
}

static void look_at_cells(struct survey *survey)
{
  const struct hk_csv *csv = survey->csv;
  for (uint32_t i = 0; i < csv->columns.sensors; i++) {
    const char *cell = csv->cell[csv->columns.column[i]];
    struct seen *seen = &survey->seen[i];
    double number;
    if (hk_csv_missing(cell))
      continue;
    if (hk_csv_number(cell, HK_DECIMAL_AUTO, csv->header.separator == ',', &number)) {
      const unsigned decimal = hk_decimal_seen(cell);
      if (decimal == HK_SEEN_EITHER && !(survey->decimal & HK_SEEN_EITHER))
        snprintf(survey->either, sizeof survey->either, "%s", cell);
      survey->decimal |= decimal;
      seen->numbers++;
      survey->points++;
    } else if (seen->words++ == 0) {
      seen->line = hk_csv_lines_number(csv->lines);
      snprintf(seen->word, sizeof seen->word, "%s", cell);
      if (csv->config.long_sensor)
        snprintf(survey->of, sizeof survey->of, "%s", csv->cell[csv->columns.named]);
    }
  }
}

/* Leaves out columns with more words than numbers, unless they were requested or no column would remain. */
static int leave_text(struct survey *survey)
{
  struct hk_csv *csv = survey->csv;
  const uint32_t n = csv->columns.sensors;
  bool *text = calloc(n + 1, sizeof *text);
  char names[SHOWN] = "", instead[SHOWN] = "";
  uint32_t left = 0;
  if (!text)
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++)
    left += text[i] = survey->seen[i].words > survey->seen[i].numbers;
  if (left == 0 || left == n || csv->config.n_columns > 0 || csv->config.long_sensor) {
    free(text);
    return 0;
  }
  if (left == 1 && n == 2) /* one of words and one of numbers may be names and values */
    snprintf(instead, sizeof instead, "; if it names the sensor of each line, say --long '%.80s,%.80s'",
             csv->columns.name[text[1]], csv->columns.name[text[0]]);
  for (uint32_t i = 0, kept = 0, told = 0; i < n; i++) {
    const size_t used = strlen(names);
    if (!text[i])
      survey->seen[kept++] = survey->seen[i];
    else if (told++ < 8)
      snprintf(names + used, sizeof names - used, "%s%.80s", told > 1 ? ", " : "", csv->columns.name[i]);
    else if (told == 9)
      snprintf(names + used, sizeof names - used, " and %u more", left - 8);
  }
  hk_csv_tell(csv, "%s left out, for %s text: %s%s", left > 1 ? "columns" : "a column", left > 1 ? "they are" : "it is", names,
              instead);
  hk_csv_columns_leave(&csv->columns, text);
  free(text);
  return 0;
}

static void look_for_words(struct survey *survey)
{
  struct hk_csv *csv = survey->csv;
  char error[512];
  for (uint32_t i = 0; i < csv->columns.sensors; i++) {
    const struct seen *seen = &survey->seen[i];
    const char *name = csv->config.long_sensor ? survey->of : csv->columns.name[i];
    if (seen->words > 0 && hk_csv_wrong(csv->lines, seen->line, error, sizeof error, "\"%.40s\" is no number, of sensor %.80s%s",
                                        seen->word, name, csv->columns.sensors > 1 ? " (--column chooses columns)" : "") < 0)
      csv_survey_wrong(survey, error, seen->line);
  }
}

/* Chooses how to read cells by what they have in common. */
static void choose_decimal(struct survey *survey)
{
  struct hk_csv *csv = survey->csv;
  const unsigned seen = survey->decimal & (HK_SEEN_POINT | HK_SEEN_COMMA);
  if (csv->config.decimal != HK_DECIMAL_AUTO)
    return;
  csv->decimal = seen == HK_SEEN_POINT ? HK_DECIMAL_POINT : seen == HK_SEEN_COMMA ? HK_DECIMAL_COMMA : HK_DECIMAL_AUTO;
  double number;
  if (!(survey->decimal & HK_SEEN_EITHER) || seen == HK_SEEN_COMMA ||
      !hk_csv_number(survey->either, csv->decimal, csv->header.separator == ',', &number))
    return;
  hk_csv_tell(csv, "%s is taken as %.10g (--decimal says which sign stands before the fraction)", survey->either, number);
}

/* Decides whether the points must be sorted. Returns 0, or -EINVAL with a message. */
static int choose_sorting(struct survey *survey, char *error, size_t size)
{
  struct hk_csv *csv = survey->csv;
  const int order = csv->times.known ? (int)csv->times.order : HK_DATE_YMD;
  const uint64_t up = survey->up[order], down = survey->down[order];
  const uint64_t most = csv->config.most_sorted > 0 ? csv->config.most_sorted : hk_csv_sorted_most();
  const bool descends = down > up;
  if (down == 0 || (!descends && !csv->config.long_sensor))
    return 0;
  csv->descends = survey->points <= most;
  if (csv->descends)
    hk_csv_tell(csv, "the times %s: its points are sorted", descends ? "descend" : "go back");
  else if (descends)
    return hk_csv_wrong(csv->lines, survey->down_line[order], error, size,
                        "the times descend, and %llu points are too many to be sorted in memory: sort the file first",
                        (unsigned long long)survey->points);
  return 0;
}

/* Collects the names of a long recording, so that every sensor is known before the first point is returned. */
static int csv_survey_take_name(struct survey *survey)
{
  struct hk_csv *csv = survey->csv;
  const char *name = csv->columns.named == HK_NO_COLUMN ? "" : csv->cell[csv->columns.named];
  if (!hk_name_valid(name, strlen(name))) /* there is none, or it is reported when the line is read */
    return 0;
  return hk_csv_names_number(&csv->names, name) == UINT32_MAX ? -ENOMEM : 0;
}

static int csv_survey_look_through(struct survey *survey, char *error, size_t size)
{
  struct hk_csv *csv = survey->csv;
  for (;;) {
    const int status = hk_csv_line(csv, error, size);
    if (status == -EINVAL)
      csv_survey_wrong(survey, error, hk_csv_lines_number(csv->lines));
    if (status <= 0 && (status != -EINVAL || !csv->config.skip_bad))
      return status == -EINVAL ? 0 : status;
    if (status < 0)
      continue;
    look_at_time(survey, error, size);
    look_at_cells(survey);
    if (csv_survey_take_name(survey) < 0)
      return -ENOMEM;
    if (survey->wrong_line > 0 && !csv->config.skip_bad)
      return 0;
  }
}

int hk_csv_survey(struct hk_csv *csv, char *error, size_t size)
{
  struct survey survey = { .csv = csv, .seen = calloc(csv->columns.sensors + 1, sizeof *survey.seen) };
  csv->quiet = true;
  int status = survey.seen ? csv_survey_look_through(&survey, error, size) : -ENOMEM;
  csv->quiet = false;
  if (status == 0)
    status = leave_text(&survey);
  if (status == 0) {
    look_for_words(&survey);
    choose_decimal(&survey);
  }
  if (status == 0 && survey.wrong_line > 0 && !csv->config.skip_bad) {
    snprintf(error, size, "%s", survey.wrong);
    status = -EINVAL;
  }
  if (status == 0 && !csv->times.format && !hk_csv_time_choose(&survey.votes, &csv->times))
    status = hk_csv_ask_order(csv, &survey.votes, error, size);
  if (status == 0) {
    hk_csv_tell_times(csv, &survey.votes);
    status = choose_sorting(&survey, error, size);
  }
  if (status == -ENOMEM)
    snprintf(error, size, "out of memory");
  free(survey.seen);
  return status;
}
