/* Bytes of a recording. The first few determine the format, and are then returned like all others. */
#include "daemon/cli/csv_bytes.h"
#include "daemon/cli/csv_magic.h"
#include "daemon/cli/csv_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 32768 /* bytes of UTF-16 that are turned at once */

enum code { UTF8, UTF16_LITTLE, UTF16_BIG };

struct hk_csv_bytes {
  int fd;
  bool regular;
  int64_t begin, size, taken; /* position at which the file was opened; its size (regular files); number of bytes read */
  unsigned char head[HK_MAGIC_MOST];
  size_t n_head, given; /* of them read, and handed on */
  struct hk_unpack *unpack;
  enum code code;
  bool odd; /* UTF-16: one byte of a unit was read */
  unsigned char half;
  uint32_t high; /* UTF-16: a high surrogate whose low one was not read yet, or 0 */
};

static ssize_t csv_bytes_read_file(struct hk_csv_bytes *bytes, char *to, size_t room)
{
  ssize_t got;
  do
    got = read(bytes->fd, to, room);
  while (got < 0 && errno == EINTR);
  if (got < 0)
    return -errno;
  bytes->taken += got;
  return got;
}

/* Returns some of the first bytes, which were examined. 0: all were returned. */
static size_t csv_bytes_head(struct hk_csv_bytes *bytes, char *to, size_t room)
{
  const size_t n = bytes->n_head - bytes->given < room ? bytes->n_head - bytes->given : room;
  memcpy(to, bytes->head + bytes->given, n);
  bytes->given += n;
  return n;
}

static ssize_t csv_bytes_packed(void *arg, char *to, size_t room)
{
  struct hk_csv_bytes *bytes = arg;
  const size_t n = csv_bytes_head(bytes, to, room);
  return n > 0 ? (ssize_t)n : csv_bytes_read_file(bytes, to, room);
}

/* Returns decompressed bytes. */
static ssize_t csv_bytes_read_plain(struct hk_csv_bytes *bytes, char *to, size_t room, char *error, size_t size)
{
  const size_t n = csv_bytes_head(bytes, to, room);
  if (n > 0)
    return (ssize_t)n;
  if (bytes->unpack)
    return hk_unpack_read(bytes->unpack, to, room, error, size);
  const ssize_t got = csv_bytes_read_file(bytes, to, room);
  if (got < 0)
    snprintf(error, size, "%s", strerror((int)-got));
  return got;
}

/* Opens a compressed file, and reads its first decompressed bytes. */
static int unpack(struct hk_csv_bytes *bytes, char *error, size_t size)
{
  int status = hk_unpack_open(&bytes->unpack, csv_bytes_packed, bytes, error, size);
  ssize_t got = status < 0 ? status : 1;
  for (bytes->n_head = status < 0 ? bytes->n_head : 0; got > 0 && bytes->n_head<2; bytes->n_head += got> 0 ? (size_t)got : 0)
    got = hk_unpack_read(bytes->unpack, (char *)bytes->head + bytes->n_head, 2 - bytes->n_head, error, size);
  bytes->given = 0;
  return got < 0 ? (int)got : 0;
}

/* Reads as many bytes as determine the format. */
static int csv_bytes_look(struct hk_csv_bytes *bytes, char *error, size_t size)
{
  bool more = true, is_packed = false;
  bytes->n_head = bytes->given = 0;
  bytes->code = UTF8;
  bytes->odd = false;
  bytes->high = 0;
  while (more && bytes->n_head < sizeof bytes->head) {
    const ssize_t got =
        csv_bytes_read_file(bytes, (char *)bytes->head + bytes->n_head, bytes->n_head < 2 ? 2 - bytes->n_head : 1);
    if (got < 0)
      snprintf(error, size, "%s", strerror((int)-got));
    if (got < 0)
      return (int)got;
    bytes->n_head += (size_t)got;
    is_packed = hk_magic_packed(bytes->head, bytes->n_head, &more);
    more = got > 0 && (more || bytes->n_head < 2);
  }
  const int status = is_packed ? unpack(bytes, error, size) : 0;
  const unsigned char *h = bytes->head;
  if (bytes->n_head >= 2 && ((h[0] == 0xff && h[1] == 0xfe) || (h[0] && !h[1])))
    bytes->code = UTF16_LITTLE;
  if (bytes->n_head >= 2 && ((h[0] == 0xfe && h[1] == 0xff) || (!h[0] && h[1])))
    bytes->code = UTF16_BIG;
  return status;
}

int hk_csv_bytes_open(struct hk_csv_bytes **out, const char *path, char *error, size_t size)
{
  struct hk_csv_bytes *bytes = calloc(1, sizeof *bytes);
  struct stat about;
  int status = 0;
  if (!bytes) {
    snprintf(error, size, "out of memory");
    return -ENOMEM;
  }
  bytes->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (bytes->fd < 0 || fstat(bytes->fd, &about) < 0) {
    status = -errno;
    snprintf(error, size, "%s", strerror(-status));
  } else if (S_ISDIR(about.st_mode)) {
    status = -EISDIR;
    snprintf(error, size, "a folder, not a file");
  } else {
    bytes->regular = S_ISREG(about.st_mode);
    bytes->begin = bytes->regular ? lseek(bytes->fd, 0, SEEK_CUR) : 0;
    bytes->size = bytes->regular ? about.st_size - bytes->begin : 0;
    status = csv_bytes_look(bytes, error, size);
  }
  if (status < 0)
    hk_csv_bytes_close(bytes);
  else
    *out = bytes;
  return status;
}

void hk_csv_bytes_close(struct hk_csv_bytes *bytes)
{
  if (!bytes)
    return;
  hk_unpack_close(bytes->unpack);
  if (bytes->fd > STDIN_FILENO)
    close(bytes->fd);
  free(bytes);
}

int hk_csv_bytes_rewind(struct hk_csv_bytes *bytes, char *error, size_t size)
{
  hk_unpack_close(bytes->unpack);
  bytes->unpack = NULL;
  bytes->taken = 0;
  if (lseek(bytes->fd, bytes->begin, SEEK_SET) < 0) {
    const int code = errno;
    snprintf(error, size, "%s", strerror(code));
    return -code;
  }
  return csv_bytes_look(bytes, error, size);
}

/* Writes a character as UTF-8, at most 4 bytes. */
static size_t csv_bytes_put(uint32_t c, char *to)
{
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, c >>= 6)
    to[i] = (char)(0x80 | (c & 0x3f));
  to[0] = (char)(n == 2 ? 0xc0 | c : n == 3 ? 0xe0 | c : 0xf0 | c);
  return n;
}

/* A unit of UTF-16; what is not of a pair becomes U+FFFD. At most 6 bytes. */
static size_t csv_bytes_turn(struct hk_csv_bytes *bytes, uint32_t unit, char *to)
{
  size_t n = 0;
  if (unit >= 0xdc00 && unit < 0xe000 && bytes->high) {
    n = csv_bytes_put(0x10000 + ((bytes->high - 0xd800) << 10) + (unit - 0xdc00), to);
    bytes->high = 0;
    return n;
  }
  if (bytes->high)
    n = csv_bytes_put(0xfffd, to);
  bytes->high = unit >= 0xd800 && unit < 0xdc00 ? unit : 0;
  if (!bytes->high)
    n += csv_bytes_put(unit >= 0xdc00 && unit < 0xe000 ? 0xfffd : unit, to + n);
  return n;
}

static ssize_t read_utf16(struct hk_csv_bytes *bytes, char *to, size_t room, char *error, size_t size)
{
  unsigned char raw[PIECE];
  size_t used = 0;
  while (used == 0) { /* half a character: the other half follows */
    const ssize_t got = csv_bytes_read_plain(bytes, (char *)raw, room / 6 < PIECE ? room / 6 : PIECE, error, size);
    if (got <= 0)
      return got;
    for (ssize_t i = 0; i < got; i++) {
      bytes->odd = !bytes->odd;
      if (!bytes->odd)
        used += csv_bytes_turn(
            bytes, bytes->code == UTF16_BIG ? (uint32_t)bytes->half << 8 | raw[i] : (uint32_t)raw[i] << 8 | bytes->half,
            to + used);
      bytes->half = raw[i];
    }
  }
  return (ssize_t)used;
}

ssize_t hk_csv_bytes_read(struct hk_csv_bytes *bytes, char *to, size_t room, char *error, size_t size)
{
  return bytes->code == UTF8 ? csv_bytes_read_plain(bytes, to, room, error, size) : read_utf16(bytes, to, room, error, size);
}

bool hk_csv_bytes_regular(const struct hk_csv_bytes *bytes)
{
  return bytes->regular;
}

bool hk_csv_bytes_ready(const struct hk_csv_bytes *bytes)
{
  return bytes->regular || bytes->unpack;
}

int hk_csv_bytes_fd(const struct hk_csv_bytes *bytes)
{
  return bytes->fd;
}

double hk_csv_bytes_progress(const struct hk_csv_bytes *bytes)
{
  return bytes->size > 0 ? (double)bytes->taken / (double)bytes->size : -1;
}
