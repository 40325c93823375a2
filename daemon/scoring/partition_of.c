#include "daemon/scoring/partition_of.h"

#include "proto/wire/partition.h"

#include <string.h>

/* The partition of a machine's sensors. False: its name is too long, and each has its own. */
static bool partition_of_machine(struct hk_machine_name *machine, uint32_t partitions, uint32_t *partition)
{
  char series[HK_NAME_MAX];
  if (machine->beside) {
    *partition = hk_partition(machine->beside, strlen(machine->beside), partitions);
    return true;
  }
  if (machine->first)
    machine->group = machine->first;
  const size_t length = hk_sections_series(machine, series);
  *partition = length > 0 ? hk_partition(series, length, partitions) : 0;
  return length > 0;
}

uint32_t hk_partition_of(const struct hk_sections *sections, struct hk_string name, uint32_t partitions)
{
  struct hk_machine_name machine;
  uint32_t partition;
  if ((hk_sections_group(sections, name.data, name.length, &machine) ||
       hk_sections_field(sections, name.data, name.length, &machine)) &&
      partition_of_machine(&machine, partitions, &partition))
    return partition;
  return hk_partition(name.data, name.length, partitions);
}

uint32_t hk_partition_of_series(const struct hk_sections *sections, struct hk_string name, uint32_t partitions)
{
  struct hk_machine_name machine;
  uint32_t partition;
  if (hk_sections_machine(sections, name.data, name.length, &machine) && partition_of_machine(&machine, partitions, &partition))
    return partition;
  if (hk_sections_derived(sections, name.data, name.length))
    name.length = (size_t)((const char *)memrchr(name.data, HK_DERIVED_MARK, name.length) - name.data);
  return hk_partition_of(sections, name, partitions);
}
