/* The partition of each key of proto/vectors/partitions.json; and that many names are spread evenly. */
#include "proto/wire/partition.h"
#include "tests/unit/support/frames.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

static void test_vectors(void **state)
{
  (void)state;
  static char text[1 << 16];
  FILE *f = fopen(getenv("PARTITIONS"), "r");
  assert_non_null(f);
  const size_t size = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  cJSON *json = cJSON_ParseWithLength(text, size), *each;
  const cJSON *all = cJSON_GetObjectItemCaseSensitive(json, "partitions");
  assert_true(cJSON_GetArraySize(all) > 50);
  cJSON_ArrayForEach(each, all)
  {
    const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(each, "key"));
    const uint32_t of = (uint32_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(each, "partitions"));
    const uint32_t wanted = (uint32_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(each, "partition"));
    if (hk_partition(key, strlen(key), of) != wanted)
      fail_msg("%s of %u: %u, not %u", key, of, hk_partition(key, strlen(key), of), wanted);
  }
  cJSON_Delete(json);
}

/* None of 64 partitions with 1,000 sensors each deviates by more than 5 standard deviations, in whatever way names are
 * numbered. */
static void test_spread(void **state)
{
  (void)state;
  static const char *const forms[] = { "%u", "sensor-%06u", "plant/line %u/temperature" };
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    uint32_t n[64] = { 0 };
    for (uint32_t i = 0; i < 64000; i++) {
      char name[64];
      const int length = k == 0   ? snprintf(name, sizeof name, "%u", i)
                         : k == 1 ? snprintf(name, sizeof name, "sensor-%06u", i)
                                  : snprintf(name, sizeof name, "plant/line %u/temperature", i);
      n[hk_partition(name, (size_t)length, 64)]++;
    }
    for (uint32_t i = 0; i < 64; i++)
      if (n[i] < 842 || n[i] > 1158)
        fail_msg("%s: %u sensors in partition %u", forms[k], n[i], i);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors), cmocka_unit_test(test_spread) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
