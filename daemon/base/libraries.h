/* Libraries that are loaded when a configuration or a command needs them (cpu/library.h): their sonames. */
#ifndef HK_LIBRARIES_H
#define HK_LIBRARIES_H

#define HK_LIBCURL "libcurl.so.4"        /* [notify NAME] */
#define HK_LIBGLIB "libglib-2.0.so.0"    /* time zones with a name */
#define HK_LIBKAFKA "librdkafka.so.1"    /* [cluster] with engine = kafka */
#define HK_LIBSNAPPY "libsnappy.so.1"    /* remote write */
#define HK_LIBARCHIVE "libarchive.so.13" /* packed recordings */

#endif
