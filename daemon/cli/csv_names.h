/* Names of the sensors of a long recording, each with a number from 0 on. Thread: the caller's. */
#ifndef HK_CSV_NAMES_H
#define HK_CSV_NAMES_H

#include <stdint.h>

struct hk_csv_names { /* all zero: none. Owner of what it points to: this */
  char **name;
  uint32_t n, room;
  uint32_t *place; /* by hash: a number and one, 0 is free */
};

/* The number of a name, which is added where it is new; UINT32_MAX without memory. */
uint32_t hk_csv_names_number(struct hk_csv_names *names, const char *name);
void hk_csv_names_free(struct hk_csv_names *names);

#endif
