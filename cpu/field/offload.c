/* Computes rows of a field on a device: see offload.h. */
#include "cpu/field/offload.h"

/* The device failed, or could not open the field: the host computes from now on. */
static void give_up(struct hk_field_offload *o, const char *why)
{
  const struct hk_field_place place = o->place;
  hk_offload_close(o);
  o->place.kind = NULL;
  if (place.told)
    place.told(place.arg, why);
}

/* Whether the device computes the next row, and has the columns. */
static bool ready(struct hk_field_offload *o, const struct hk_residual *host, uint32_t members)
{
  char why[256] = "";
  if (!o->place.kind || (!o->columns && members < o->place.least))
    return false;
  const bool there = o->columns;
  const int status = !there      ? o->place.kind->open(&o->columns, host, o->place.number, why, sizeof why)
                     : o->behind ? o->place.kind->write(o->columns, host, why, sizeof why)
                                 : 0;
  o->behind = false;
  if (status != 0)
    give_up(o, why);
  else if (!there && o->place.told)
    o->place.told(o->place.arg, NULL);
  return status == 0;
}

void hk_offload_row(struct hk_field_offload *o, struct hk_residual *host, uint32_t members, const double *x, double *r)
{
  char why[256] = "";
  if (!ready(o, host, members)) {
    hk_residual_row(host, x, r);
    return;
  }
  if (o->place.kind->row(o->columns, host, x, r, why, sizeof why) != 0) {
    give_up(o, why);
    hk_residual_row(host, x, r);
    return;
  }
  host->rows++;
  o->ahead = true;
}

void hk_offload_look(struct hk_field_offload *o, const struct hk_residual *host)
{
  char why[256] = "";
  if (!o->columns || !o->ahead)
    return;
  o->ahead = false;
  if (o->place.kind->read(o->columns, host, why, sizeof why) != 0)
    give_up(o, why);
}

void hk_offload_change(struct hk_field_offload *o, const struct hk_residual *host)
{
  hk_offload_look(o, host);
  o->behind = o->columns != NULL;
}

void hk_offload_grow(struct hk_field_offload *o, const struct hk_residual *host)
{
  hk_offload_look(o, host);
  hk_offload_close(o);
}

void hk_offload_close(struct hk_field_offload *o)
{
  if (o->columns)
    o->place.kind->close(o->columns);
  o->columns = NULL;
  o->ahead = o->behind = false;
}
