/* Reads a journal: segment by segment through a window of memory. Everything that is not a whole record with a good checksum
 * is reported, and skipped up to the next one that is. Only damage at the end of the last segment, without a whole record
 * after it, can be the trace of a crash. */
#include "daemon/durable/journal_read.h"
#include "daemon/base/limits.h"
#include "daemon/durable/journal.h"
#include "daemon/durable/journal_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WINDOW (2u << 20)
_Static_assert(WINDOW >= HK_RECORD_HEADER + HK_RECORD_MAX, "a record fits");

/* The properties by which the next segment names this one. */
struct known {
  uint64_t bytes, salt;
  bool good; /* its head is good */
};

struct hk_journal_reader {
  struct hk_journal_place place;
  uint64_t from;
  hk_journal_damage *damage;
  void *arg;
  uint64_t *numbers;
  struct known *known;
  size_t n, next; /* the segment to open next */
  size_t first;   /* the segment that was opened first */
  int file;       /* -1: none */
  struct hk_segment_head head;
  char name[HK_DISK_NAME_MAX];
  uint64_t bytes, at;            /* size of the segment; bytes read so far */
  uint64_t position;             /* after the last record of the segment; initially where the segment begins */
  uint64_t left;                 /* bytes in later segments */
  uint64_t window_at, window_to; /* the part of the segment that is in memory */
  uint8_t *window;
  uint64_t tail; /* where to cut the last segment; UINT64_MAX: no cut */
};

/* Reads the head of a segment. Returns 0; -EBADMSG: it has no good one; -EPROTONOSUPPORT: *why; or another negative errno. */
static int journal_read_read_head(struct hk_journal_reader *r, uint64_t number, struct hk_segment_head *head, int *file,
                                  uint64_t *bytes, char *why, size_t size)
{
  hk_disk_name(r->name, r->place.stem, number, r->place.suffix);
  int status = hk_disk_open(r->place.disk, r->place.folder, r->name, file, bytes);
  if (status != 0)
    return status;
  const size_t some = *bytes < sizeof *head ? (size_t)*bytes : sizeof *head;
  memset(head, 0, sizeof *head);
  status = hk_disk_read(r->place.disk, *file, 0, head, some);
  if (status == 0 && !hk_segment_head_good(head, some))
    status = -EBADMSG;
  const bool read = status == 0 && head->version >= HK_JOURNAL_OLDEST && head->version <= HK_JOURNAL_VERSION;
  if (read && (head->shards == 0 || head->shards > HK_SHARDS_MAX))
    status = -EBADMSG;
  if (status == 0 && (!read || head->kind != r->place.kind || head->number != number)) {
    snprintf(why, size,
             "%s: version %u, kind %u, number %" PRIu64 "; this program reads versions %d to %d, kind %u, number %" PRIu64,
             r->name, head->version, head->kind, head->number, HK_JOURNAL_OLDEST, HK_JOURNAL_VERSION, r->place.kind, number);
    status = -EPROTONOSUPPORT;
  }
  if (status != 0)
    close(*file);
  return status;
}

/* Reads the heads to find the segment from which on everything from a position is included. */
static int find_first(struct hk_journal_reader *r, uint64_t from, char *why, size_t size)
{
  for (size_t i = 0; i < r->n; i++) {
    struct hk_segment_head head;
    uint64_t bytes;
    int file;
    const int status = journal_read_read_head(r, r->numbers[i], &head, &file, &bytes, why, size);
    if (status == -EPROTONOSUPPORT)
      return status;
    if (status != 0 && status != -EBADMSG) {
      snprintf(why, size, "%s: %s", r->name, strerror(-status));
      return status;
    }
    if (status == 0)
      close(file);
    r->known[i] = (struct known){ bytes, head.salt, status == 0 };
    if (status == 0 && head.begin < from && i > 0) { /* one that begins there may follow records that advance nothing */
      r->next = i;
      r->left = 0;
    }
    r->left += bytes;
  }
  return 0;
}

int hk_journal_read(struct hk_journal_reader **out, const struct hk_journal_place *place, uint64_t from,
                    hk_journal_damage *damage, void *arg, char *why, size_t size)
{
  struct hk_journal_reader *r = calloc(1, sizeof *r);
  if (!r)
    return -ENOMEM;
  *r = (struct hk_journal_reader){ .place = *place, .from = from, .damage = damage, .arg = arg, .file = -1, .tail = UINT64_MAX };
  r->window = malloc(WINDOW);
  int status = r->window ? hk_disk_list(place->disk, place->folder, place->stem, place->suffix, &r->numbers, &r->n) : -ENOMEM;
  if (status == 0 && r->n > 0 && !(r->known = calloc(r->n, sizeof *r->known)))
    status = -ENOMEM;
  if (status != 0)
    snprintf(why, size, "%s files: %s", place->stem, strerror(-status));
  else
    status = find_first(r, from, why, size);
  r->first = r->next;
  if (status != 0) {
    hk_journal_read_close(r);
    return status;
  }
  *out = r;
  return 0;
}

/* Skips and reports the part of the segment from `at` to `end`. */
static void journal_read_leave_out(struct hk_journal_reader *r, uint64_t at, uint64_t end, bool tail, const char *why)
{
  const struct hk_journal_damaged damaged = { r->name, r->numbers[r->next - 1], at, end - at, tail, false, why };
  if (tail)
    r->tail = at;
  if (r->damage)
    r->damage(r->arg, &damaged);
  r->at = end;
}

/* A head fits a sector: of the last segment a crash leaves the whole head or nothing. */
static bool is_unwritten(const struct hk_journal_reader *r)
{
  static const struct hk_segment_head nothing;
  return r->next == r->n && (r->bytes < sizeof nothing || memcmp(&r->head, &nothing, sizeof nothing) == 0);
}

/* Reports if the committed records before the opened segment are incomplete. Not for the first segment if all that is needed
 * begins in it, or the needed position is unknown: older segments may have been removed as no longer needed. */
static void look_before(struct hk_journal_reader *r)
{
  const struct hk_segment_head *head = &r->head;
  const size_t here = r->next - 1;
  char before[HK_DISK_NAME_MAX], why[2 * HK_DISK_NAME_MAX + 80];
  size_t i = 0;
  if (head->before == 0 || (here == r->first && (r->from == 0 || head->begin <= r->from)))
    return;
  hk_disk_name(before, r->place.stem, head->before, r->place.suffix);
  while (i < here && r->numbers[i] != head->before)
    i++;
  if (i == here)
    snprintf(why, sizeof why, "%s, the file before it, is missing", before);
  else if (r->known[i].good && r->known[i].salt != head->before_salt)
    snprintf(why, sizeof why, "%s is not the file that was before it", before);
  else if (r->known[i].bytes < head->before_bytes)
    snprintf(why, sizeof why, "%s, the file before it, had %" PRIu64 " bytes, and has %" PRIu64, before, head->before_bytes,
             r->known[i].bytes);
  else
    return;
  const struct hk_journal_damaged damaged = { r->name, r->numbers[here], 0, 0, false, true, why };
  if (r->damage)
    r->damage(r->arg, &damaged);
}

/* Opens the next segment. Returns 1; 0: there is none; or a negative errno. */
static int open_next(struct hk_journal_reader *r)
{
  char why[256];
  if (r->file >= 0)
    close(r->file);
  r->file = -1;
  if (r->next == r->n)
    return 0;
  const uint64_t number = r->numbers[r->next++];
  const int status = journal_read_read_head(r, number, &r->head, &r->file, &r->bytes, why, sizeof why);
  if (status == -EBADMSG) {
    r->file = -1;
    r->left -= r->bytes;
    journal_read_leave_out(r, 0, r->bytes, is_unwritten(r), "its head is damaged");
    return 1;
  }
  if (status != 0) {
    r->file = -1;
    return status;
  }
  r->left -= r->bytes < r->left ? r->bytes : r->left;
  r->at = hk_segment_head_bytes(r->head.version);
  r->position = r->head.begin;
  look_before(r);
  r->window_at = r->window_to = 0;
  return 1;
}

/* Loads `size` bytes from `at` on. NULL and *status = 0: the segment ends before. */
static const uint8_t *journal_read_look(struct hk_journal_reader *r, uint64_t at, size_t size, int *status)
{
  *status = 0;
  if (r->bytes - at < size)
    return NULL;
  if (at < r->window_at || at + size > r->window_to) {
    const uint64_t rest = r->bytes - at;
    const size_t some = rest < WINDOW ? (size_t)rest : WINDOW;
    *status = hk_disk_read(r->place.disk, r->file, at, r->window, some);
    if (*status != 0)
      return NULL;
    r->window_at = at;
    r->window_to = at + some;
  }
  return r->window + (at - r->window_at);
}

/* Checks the record at `at`. NULL: it is whole; else why it is not, which is meaningless if *status is an error. */
static const char *journal_read_look_at(struct hk_journal_reader *r, uint64_t at, struct hk_record *out, int *status)
{
  struct hk_record_head head;
  const uint8_t *bytes = journal_read_look(r, at, sizeof head, status);
  if (!bytes)
    return "it ends in the middle of a record";
  memcpy(&head, bytes, sizeof head);
  if (head.size > HK_RECORD_MAX || head.reserved != 0)
    return "there is no record";
  bytes = journal_read_look(r, at, hk_record_bytes(head.size), status);
  if (!bytes)
    return "it ends in the middle of a record";
  if (hk_record_checksum(&head, bytes + sizeof head, r->head.salt) != head.checksum)
    return "a checksum is wrong";
  *out = (struct hk_record){ head.type, head.count, head.position, head.size, bytes + sizeof head };
  return NULL;
}

/* Searches for a whole record after *at. True: *at is where it begins. */
static bool journal_read_search(struct hk_journal_reader *r, uint64_t *at, struct hk_record *out, int *status)
{
  while (*status == 0 && r->bytes - *at >= sizeof(struct hk_record_head) + sizeof(uint64_t)) {
    struct hk_record_head head;
    *at += sizeof(uint64_t); /* records begin at multiples of 8 */
    const uint8_t *bytes = journal_read_look(r, *at, sizeof head, status);
    if (!bytes)
      break;
    memcpy(&head, bytes, sizeof head);
    /* Positions never decrease in a segment, and advance by less than the bytes of records: few are tried in vain. */
    if (head.type != 0 && head.position >= r->position && head.position - r->position < r->bytes &&
        !journal_read_look_at(r, *at, out, status))
      return true;
  }
  return false;
}

/* Returns 1: a record; 0: the segment has no more; or a negative errno. */
static int next_here(struct hk_journal_reader *r, struct hk_record *out)
{
  int status = 0;
  if (r->at == r->bytes)
    return 0;
  const char *why = journal_read_look_at(r, r->at, out, &status);
  if (why && status == 0) {
    uint64_t at = r->at;
    const bool found = journal_read_search(r, &at, out, &status);
    if (status == 0)
      journal_read_leave_out(r, r->at, found ? at : r->bytes, !found && r->next == r->n, why);
    if (!found)
      return status;
  }
  if (status != 0)
    return status;
  r->at += hk_record_bytes(out->size);
  r->position = out->position + out->count;
  return 1;
}

int hk_journal_next(struct hk_journal_reader *r, struct hk_record *out)
{
  for (;;) {
    int status = r->file >= 0 ? next_here(r, out) : 0;
    if (status != 0)
      return status;
    status = open_next(r);
    if (status <= 0)
      return status;
  }
}

uint32_t hk_journal_shards(const struct hk_journal_reader *r)
{
  return r->head.shards;
}

uint64_t hk_journal_number(const struct hk_journal_reader *r)
{
  return r->head.number;
}

bool hk_journal_holds(const struct hk_journal_reader *r, uint64_t number, uint64_t bytes, uint64_t salt)
{
  for (size_t i = 0; i < r->n; i++)
    if (r->numbers[i] == number)
      return r->known[i].bytes >= bytes && (!r->known[i].good || r->known[i].salt == salt);
  return false;
}

uint64_t hk_journal_left(const struct hk_journal_reader *r)
{
  return r->left + (r->file >= 0 ? r->bytes - r->at : 0);
}

int hk_journal_mend(struct hk_journal_reader *r)
{
  char name[HK_DISK_NAME_MAX];
  if (r->n == 0 || r->tail == UINT64_MAX)
    return 0;
  hk_disk_name(name, r->place.stem, r->numbers[r->n - 1], r->place.suffix);
  const int status = r->tail == 0 ? hk_disk_remove(r->place.disk, r->place.folder, name)
                                  : hk_disk_cut(r->place.disk, r->place.folder, name, r->tail);
  return status;
}

void hk_journal_read_close(struct hk_journal_reader *r)
{
  if (!r)
    return;
  if (r->file >= 0)
    close(r->file);
  free(r->numbers);
  free(r->known);
  free(r->window);
  free(r);
}
