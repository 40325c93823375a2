/* Rows of groups and of fields, under one name: see machine.h. */
#include "daemon/scoring/machine.h"
#include "cpu/group/state.h"
#include "daemon/sensors/slot_binding.h"
#include "proto/wire/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Used on the host if the device does not compute it. */
static int attach(struct hk_machine *m, const struct hk_machine_name *name, struct hk_machine_place *at)
{
  const struct hk_pipelines_place host = { &hk_pipelines_host, 1 };
  char error[sizeof at->why];
  int status = hk_field_attach(m->field.model, name->file->plan, &at->place, error, sizeof error);
  if (status == 0 || status == -EBADMSG || at->place.kind == host.kind)
    return status;
  memcpy(at->why, error, sizeof error);
  return hk_field_attach(m->field.model, name->file->plan, &host, error, sizeof error);
}

/* Gives a focus its positions. -EBADMSG and -EINVAL: of the state, since the positions were checked with the configuration. */
static int attach_line(struct hk_machine *m, const struct hk_machine_name *name)
{
  char error[256];
  return hk_field_attach_line(m->field.model, hk_field_graph_nodes(name->file->graph),
                              hk_field_graph_positions(name->file->graph), error, sizeof error);
}

static int open_field(struct hk_machine *m, const struct hk_machine_name *name, struct hk_machine_place *at, const void *state,
                      size_t size)
{
  int status = state ? hk_field_read(&m->field.model, name->field, state, size) : hk_field_new(&m->field.model, name->field);
  m->field.kinds = *name->series;
  if (status == 0 && name->file->plan)
    status = attach(m, name, at);
  if (status == 0 && name->field->kind == HK_FIELD_FOCUS)
    status = attach_line(m, name);
  return status == 0 ? hk_field_binding_of(&m->field.binding, name->field, name->file, m->field.model) : status;
}

int hk_machine_new(struct hk_machine **out, const struct hk_machine_name *name, struct hk_machine_place *at, const void *state,
                   size_t size)
{
  struct hk_machine *m = calloc(1, sizeof *m);
  int status = -ENOMEM;
  if (m && name->field) {
    status = open_field(m, name, at, state, size);
  } else if (m) {
    m->rule = *name->rule;
    status = state ? hk_group_read(&m->group, name->rule, state, size) : hk_group_new(&m->group, name->rule);
  }
  if (status == 0)
    *out = m;
  else if (m)
    hk_machine_free(m);
  return status;
}

void hk_machine_free(struct hk_machine *m)
{
  hk_group_free(m->group);
  hk_field_binding_close(&m->field.binding);
  hk_field_free(m->field.model);
  free(m->handles);
  free(m->field.series);
  free(m->field.tried);
  free(m->changes.list);
  free(m);
}

/* Enlarges a list; new places are `none`. False: no memory. */
static bool lengthen(uint32_t **list, size_t before, size_t room, uint32_t none)
{
  uint32_t *longer = realloc(*list, (room + 1) * sizeof *longer);
  if (!longer)
    return false;
  for (size_t i = before; i < room; i++)
    longer[i] = none;
  *list = longer;
  return true;
}

bool hk_machine_number(struct hk_machine *m, uint32_t number, uint32_t handle)
{
  if (number >= m->n_handles) {
    const uint32_t room = 2 * number + 8, n = m->field.kinds.n;
    if (!lengthen(&m->handles, m->n_handles, room, HK_NO_HANDLE) || !lengthen(&m->field.tried, m->n_handles, room, 0) ||
        !lengthen(&m->field.series, (size_t)m->n_handles * n, (size_t)room * n, HK_NO_HANDLE))
      return false;
    m->n_handles = room;
  }
  m->handles[number] = handle;
  return true;
}

bool hk_machine_join(struct hk_machine *m, uint32_t handle, struct hk_string name, uint32_t *member)
{
  if ((m->group ? hk_group_join(m->group, member) : hk_field_join(m->field.model, member)) != 0)
    return false;
  if (!hk_machine_number(m, *member, handle)) {
    hk_machine_leave(m, *member);
    return false;
  }
  if (m->field.model)
    hk_field_binding_join(&m->field.binding, m->field.model, *member, name.data, name.length);
  return true;
}

void hk_machine_leave(struct hk_machine *m, uint32_t member)
{
  if (m->group) {
    hk_group_leave(m->group, member);
  } else {
    hk_field_binding_leave(&m->field.binding, m->field.model, member);
    hk_field_leave(m->field.model, member);
  }
  if (member >= m->n_handles)
    return;
  m->handles[member] = HK_NO_HANDLE;
  m->field.tried[member] = 0;
  for (uint32_t k = 0; k < m->field.kinds.n; k++)
    m->field.series[(size_t)member * m->field.kinds.n + k] = HK_NO_HANDLE;
}

uint32_t hk_machine_members(const struct hk_machine *m)
{
  return m->group ? hk_group_members(m->group) : hk_field_members(m->field.model);
}

bool hk_machine_has(const struct hk_machine *m, uint32_t member)
{
  return m->group ? hk_group_has(m->group, member) : hk_field_has(m->field.model, member);
}

size_t hk_machine_state_size(const struct hk_machine *m)
{
  return m->group ? hk_group_state_size(m->group) : hk_field_state_size(m->field.model);
}

void hk_machine_write(const struct hk_machine *m, void *state)
{
  if (m->group)
    hk_group_write(m->group, state);
  else
    hk_field_write(m->field.model, state);
}
