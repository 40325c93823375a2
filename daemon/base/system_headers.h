/* What most sources of the daemon include of the system, precompiled with -Dprecompiled=true: in the sanitizers' builds of
 * scripts/test. Each source still includes what it needs itself, which the release's build shows. */
#ifndef HK_SYSTEM_HEADERS_H
#define HK_SYSTEM_HEADERS_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#endif
