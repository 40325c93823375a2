/* Writes snapshots (snapshot.h). Functions return 0 or a negative errno. Thread: one at a time. */
#ifndef HK_SNAPSHOT_WRITE_H
#define HK_SNAPSHOT_WRITE_H

#include "daemon/durable/snapshot.h"

struct hk_snapshot_writer;

/* Creates an unfinished snapshot. folder: must stay open until close. */
int hk_snapshot_create(struct hk_snapshot_writer **out, const struct hk_disk *disk, int folder,
                       const struct hk_snapshot_about *about);
/* Returns the number of a detector's name in this file; writes the name if it is new. */
int hk_snapshot_detector(struct hk_snapshot_writer *writer, struct hk_string name, uint16_t *number);
/* Writes a feed. upto: number of its points that the shard had taken when the snapshot was begun. */
int hk_snapshot_feed(struct hk_snapshot_writer *writer, const struct hk_record_feed *feed, uint64_t upto);
/* A section: begin, add elements of its type (enum hk_snapshot_part_type), and hk_snapshot_end, which writes it unless it is
 * empty. position, arrival: of SENSORS, when they were copied (the arrival clock, ns); of MACHINES, those of the section before;
 * of others 0. */
void hk_snapshot_begin(struct hk_snapshot_writer *writer, uint32_t type, uint64_t position, int64_t arrival);
int hk_snapshot_add(struct hk_snapshot_writer *writer, const struct hk_snapshot_sensor *sensor);
int hk_snapshot_end(struct hk_snapshot_writer *writer);
int hk_snapshot_add_owner(struct hk_snapshot_writer *writer, const struct hk_snapshot_owner *owner);
int hk_snapshot_add_counter(struct hk_snapshot_writer *writer, const struct hk_snapshot_counter *counter);
int hk_snapshot_add_provisional(struct hk_snapshot_writer *writer, const struct hk_snapshot_provisional *provisional);
/* MACHINES: adds a machine whose series are in the section of sensors before. generation: of the series. The sizes of the
 * memory's arrays are multiples of 8 bytes. */
int hk_snapshot_add_machine(struct hk_snapshot_writer *writer, const struct hk_machine_memory *machine, uint8_t generation);
/* Completes the file on the disk and gives it its name. Close afterwards, also after an error. */
int hk_snapshot_finish(struct hk_snapshot_writer *writer);
/* Frees the writer; removes an unfinished file. NULL is allowed. */
void hk_snapshot_close(struct hk_snapshot_writer *writer);
uint64_t hk_snapshot_bytes(const struct hk_snapshot_writer *writer);

#endif
