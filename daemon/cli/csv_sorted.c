/* Points in memory, sorted by time, and points of the same time by sensor. */
#include "daemon/cli/csv_sorted.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int hk_csv_sorted_put(struct hk_csv_sorted *sorted, int64_t time, uint32_t sensor, double value)
{
  if (sorted->n == sorted->room) {
    const uint64_t room = sorted->room > 0 ? 2 * sorted->room : 4096;
    struct hk_csv_point *grown = realloc(sorted->point, room * sizeof *grown);
    if (!grown)
      return -ENOMEM;
    sorted->point = grown;
    sorted->room = room;
  }
  sorted->point[sorted->n++] = (struct hk_csv_point){ time, sensor, value };
  return 0;
}

static int csv_sorted_compare(const void *a, const void *b)
{
  const struct hk_csv_point *x = a, *y = b;
  if (x->time != y->time)
    return x->time < y->time ? -1 : 1;
  return (x->sensor > y->sensor) - (x->sensor < y->sensor);
}

void hk_csv_sorted_sort(struct hk_csv_sorted *sorted)
{
  if (sorted->n > 1)
    qsort(sorted->point, sorted->n, sizeof *sorted->point, csv_sorted_compare);
}

void hk_csv_sorted_free(struct hk_csv_sorted *sorted)
{
  free(sorted->point);
  *sorted = (struct hk_csv_sorted){ 0 };
}

uint64_t hk_csv_sorted_most(void)
{
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 4 / sizeof(struct hk_csv_point) : 1u << 22;
}
