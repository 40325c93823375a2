/* The program hankeld. Tests run it with backends of their own. */
#ifndef HK_PROGRAM_H
#define HK_PROGRAM_H

#include "daemon/scoring/backends.h"

/* The main function; kinds: as hk_backend_kinds. Returns the exit code. May end the process itself if a device hangs. */
int hk_program(int argc, char **argv, const struct hk_backend_kind *kinds);

#endif
