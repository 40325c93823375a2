/* Computes rows of a field on a device: see offload.h. */
#include "cpu/field/offload.h"

#include <errno.h>

/* The device failed, or could not open the field: the host computes from now on. */
static void give_up(struct hk_field_offload *o, const char *why)
{
  const struct hk_field_place place = o->place;
  hk_offload_close(o);
  o->kind = NULL;
  if (place.told)
    place.told(place.arg, why);
}

/* Whether the device computes the next row, and has the columns. */
static bool ready(struct hk_field_offload *o, void *host, uint32_t nodes)
{
  char why[256] = "";
  if (!o->kind || (!o->columns && nodes < o->place.least))
    return false;
  const bool there = o->columns;
  const int status = !there      ? o->kind->open(&o->columns, host, o->place.number, why, sizeof why)
                     : o->behind ? o->kind->write(o->columns, host, why, sizeof why)
                                 : 0;
  o->behind = false;
  o->host = host;
  if (status != 0)
    give_up(o, why);
  else if (!there && o->place.told)
    o->place.told(o->place.arg, NULL);
  return status == 0;
}

bool hk_offload_row(struct hk_field_offload *o, void *host, uint32_t nodes, int64_t row, const double *x, double *r)
{
  char why[256] = "";
  if (!ready(o, host, nodes))
    return false;
  o->ahead = o->kind->row(o->columns, host, row, x, r, why, sizeof why) == 0;
  if (!o->ahead)
    give_up(o, why);
  return o->ahead;
}

bool hk_offload_correlate(struct hk_field_offload *o, const struct hk_correlate_task *task)
{
  char why[256] = "";
  if (!o->columns || !o->kind->correlate)
    return false;
  const int status = o->kind->correlate(task, o->place.number, why, sizeof why);
  if (status != 0 && status != -ENOMEM)
    give_up(o, why);
  return status == 0;
}

void hk_offload_look(struct hk_field_offload *o)
{
  char why[256] = "";
  if (!o->columns || !o->ahead)
    return;
  o->ahead = false;
  if (o->kind->read(o->columns, o->host, why, sizeof why) != 0)
    give_up(o, why);
}

void hk_offload_change(struct hk_field_offload *o)
{
  hk_offload_look(o);
  o->behind = o->columns != NULL;
}

void hk_offload_grow(struct hk_field_offload *o)
{
  hk_offload_look(o);
  hk_offload_close(o);
}

void hk_offload_close(struct hk_field_offload *o)
{
  if (o->columns)
    o->kind->close(o->columns);
  o->columns = NULL;
  o->ahead = o->behind = false;
}
