/* FNV-1a over the bytes, followed by the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
 * generators, 2014), because the high bits of FNV-1a are poorly mixed for short keys. A few lines in any language. */
#include "proto/wire/partition.h"

uint32_t hk_partition(const char *key, size_t length, uint32_t partitions)
{
  uint64_t x = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++)
    x = (x ^ (uint8_t)key[i]) * 0x100000001b3u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((x ^ (x >> 31)) % partitions);
}
