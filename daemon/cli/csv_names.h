/* Numbers the sensor names of a long recording, from 0. Thread: the caller's. */
#ifndef HK_CSV_NAMES_H
#define HK_CSV_NAMES_H

#include <stdint.h>

struct hk_csv_names { /* zero-initialise; owns what it points to */
  char **name;
  uint32_t n, room;
  uint32_t *place; /* hash table of number + 1; 0: free */
};

/* Returns the number of a name, adding a new one; UINT32_MAX if there is no memory. */
uint32_t hk_csv_names_number(struct hk_csv_names *names, const char *name);
void hk_csv_names_free(struct hk_csv_names *names);

#endif
