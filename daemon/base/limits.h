/* Limits that several rooms share. */
#ifndef HK_BASE_LIMITS_H
#define HK_BASE_LIMITS_H

#define HK_LOOPS_MAX 64
#define HK_SHARDS_MAX 64u
#define HK_CHUNK_POINTS 16384u /* points of a chunk, and so of a record of a journal */
#define HK_CHUNK_MARKS 256u    /* feeds of which either tells how far they are */
#define HK_CONFIG_NAME_MAX 64  /* bytes of the name of a section of the configuration, with the 0 */
#define HK_FLAP_MAX 32u        /* alerts that flap_limit can count */

#endif
