/* Formats of times. ISO 8601 and numbers need no guess; for other dates, the orders remain that fit most of them. */
#include "daemon/cli/csv_time.h"
#include "daemon/base/timestamp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ISO 8601 and numbers. 0, -EINVAL or -ERANGE. */
static int csv_time_read_plain(struct hk_csv_times *times, const char *cell, int64_t *ns)
{
  if (hk_timestamp_is_date(cell))
    return hk_timestamp_parse_date(cell, ns);
  if (strspn(cell, "0123456789") == 14 && !cell[14]) /* no unit makes a time of these years of it */
    return -EINVAL;
  const int64_t unit = times->unit > 0 ? times->unit : hk_timestamp_guess_unit(cell);
  const int status = hk_timestamp_parse_epoch(cell, unit, ns);
  if (status == -EINVAL)
    return status;
  times->unit = unit;
  times->numbers = true;
  return status;
}

int hk_csv_time_read(struct hk_csv_times *times, const char *cell, int64_t *ns)
{
  if (times->format)
    return hk_date_by_format(cell, times->format, ns);
  const int status = csv_time_read_plain(times, cell, ns);
  if (status != -EINVAL)
    return status;
  if (times->known)
    return hk_date_read(cell, times->order, ns);
  return hk_csv_time_is_date(cell) ? -EAGAIN : -EINVAL;
}

/* The same time by all orders. */
static void votes_any(struct hk_csv_votes *votes, int64_t ns)
{
  for (int order = 0; order < HK_DATE_ORDERS; order++) {
    votes->fits[order] = true;
    votes->ns[order] = ns;
  }
}

bool hk_csv_time_vote(struct hk_csv_votes *votes, struct hk_csv_times *times, const char *cell, uint64_t line)
{
  int64_t *ns = votes->ns;
  bool *fits = votes->fits;
  if (times->format ? hk_date_by_format(cell, times->format, ns) == 0 : csv_time_read_plain(times, cell, ns) == 0) {
    votes_any(votes, *ns);
    return true;
  }
  for (int order = 0; order < HK_DATE_ORDERS; order++)
    fits[order] = !times->format && hk_date_read(cell, (enum hk_date_order)order, &ns[order]) == 0;
  if (!fits[HK_DATE_YMD] && !fits[HK_DATE_DMY] && !fits[HK_DATE_MDY])
    return false;
  if (votes->times++ == 0) {
    snprintf(votes->shown, sizeof votes->shown, "%s", cell);
    votes->line = line;
  }
  for (int order = 0; order < HK_DATE_ORDERS; order++)
    votes->fit[order] += fits[order];
  votes->differ |= fits[HK_DATE_DMY] && fits[HK_DATE_MDY] && ns[HK_DATE_DMY] != ns[HK_DATE_MDY];
  return true;
}

bool hk_csv_time_choose(const struct hk_csv_votes *votes, struct hk_csv_times *times)
{
  times->order = HK_DATE_YMD;
  for (int order = HK_DATE_DMY; order < HK_DATE_ORDERS; order++)
    if (votes->fit[order] > votes->fit[times->order])
      times->order = (enum hk_date_order)order;
  times->known = votes->times > 0;
  return times->order != HK_DATE_DMY || votes->fit[HK_DATE_DMY] != votes->fit[HK_DATE_MDY] || !votes->differ;
}

bool hk_csv_time_is_date(const char *cell)
{
  int64_t ns;
  if (hk_timestamp_is_date(cell) && hk_timestamp_parse_date(cell, &ns) == 0)
    return true;
  for (int order = 0; order < HK_DATE_ORDERS; order++)
    if (hk_date_read(cell, (enum hk_date_order)order, &ns) == 0)
      return true;
  return false;
}
