#include "daemon/scoring/partition_of.h"

#include "proto/wire/partition.h"

#include <string.h>

uint32_t hk_partition_of(const struct hk_sections *sections, struct hk_string name, uint32_t partitions)
{
  struct hk_machine_name machine;
  char series[HK_NAME_MAX];
  size_t length = 0;
  if (hk_sections_group(sections, name.data, name.length, &machine) ||
      hk_sections_field(sections, name.data, name.length, &machine)) {
    if (machine.beside)
      return hk_partition(machine.beside, strlen(machine.beside), partitions);
    length = hk_sections_series(&machine, series);
  }
  return length > 0 ? hk_partition(series, length, partitions) : hk_partition(name.data, name.length, partitions);
}
