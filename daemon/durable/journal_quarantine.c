/* Sets damaged files of a journal aside. The steps are ordered so that after a crash between any two the damage is found
 * again, and completed steps are recognised: later segments are renamed first, the cut comes last. */
#include "daemon/durable/journal_quarantine.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_format.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define UNFINISHED "tmp"
#define PIECE (1u << 20) /* bytes copied at a time */

static int copy_bytes(const struct hk_disk *disk, int from, uint64_t size, int to)
{
  uint8_t *piece = malloc(PIECE);
  int status = piece ? 0 : -ENOMEM;
  for (uint64_t at = 0; at < size && status == 0;) {
    const size_t some = size - at < PIECE ? (size_t)(size - at) : PIECE;
    status = hk_disk_read(disk, from, at, piece, some);
    if (status == 0)
      status = hk_disk_write(disk, to, piece, some);
    at += some;
  }
  free(piece);
  return status != 0 ? status : hk_disk_sync(disk, to);
}

/* Copies a file; the copy gets its name when it is complete. */
static int journal_quarantine_copy(const struct hk_journal_place *place, uint64_t number, const char *name, const char *aside)
{
  char unfinished[HK_DISK_NAME_MAX];
  uint64_t size;
  int from, to;
  hk_disk_name(unfinished, place->stem, number, UNFINISHED);
  int status = hk_disk_remove(place->disk, place->folder, unfinished); /* of a start that ended by a crash */
  if (status == 0 || status == -ENOENT)
    status = hk_disk_open(place->disk, place->folder, name, &from, &size);
  if (status != 0)
    return status;
  status = hk_disk_create(place->disk, place->folder, unfinished, &to);
  if (status == 0) {
    status = copy_bytes(place->disk, from, size, to);
    close(to);
  }
  close(from);
  if (status == 0)
    status = hk_disk_rename(place->disk, place->folder, unfinished, aside);
  return status;
}

/* Whether a file exists: a file that was set aside must not be overwritten. */
static int journal_quarantine_is_there(const struct hk_journal_place *place, const char *name, bool *there)
{
  uint64_t size;
  int file;
  const int status = hk_disk_open(place->disk, place->folder, name, &file, &size);
  *there = status == 0;
  if (status == 0)
    close(file);
  return status == -ENOENT ? 0 : status;
}

int hk_journal_set_aside(const struct hk_journal_place *place, uint64_t number, uint64_t at)
{
  char name[HK_DISK_NAME_MAX], aside[HK_DISK_NAME_MAX];
  uint64_t *numbers;
  size_t n;
  bool there;
  int status = hk_disk_list(place->disk, place->folder, place->stem, place->suffix, &numbers, &n);
  for (size_t i = n; i-- > 0 && status == 0;) { /* the last one first: the rest never lacks an earlier segment */
    if (numbers[i] < number || (numbers[i] == number && at > 0))
      break;
    hk_disk_name(name, place->stem, numbers[i], place->suffix);
    hk_disk_name(aside, place->stem, numbers[i], HK_JOURNAL_ASIDE);
    status = hk_disk_rename(place->disk, place->folder, name, aside);
  }
  free(numbers);
  if (status != 0 || at == 0)
    return status != 0 ? status : hk_disk_sync_folder(place->disk, place->folder);
  hk_disk_name(name, place->stem, number, place->suffix);
  hk_disk_name(aside, place->stem, number, HK_JOURNAL_ASIDE);
  status = journal_quarantine_is_there(
      place, aside, &there); /* whether a copy exists: a crash preceded the cut, or there was damage here before */
  if (status == 0 && !there)
    status = journal_quarantine_copy(place, number, name, aside);
  if (status == 0)
    status = hk_disk_sync_folder(place->disk, place->folder);
  return status != 0 ? status : hk_disk_cut(place->disk, place->folder, name, at);
}
