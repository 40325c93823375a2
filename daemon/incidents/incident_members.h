/* Members of an incident: which of its sensors was first, and which is the strongest.
 *
 * Thread: that of the incidents. */
#ifndef HK_INCIDENT_MEMBERS_H
#define HK_INCIDENT_MEMBERS_H

#include "daemon/incidents/incidents.h"

/* The member that changed first, by first alert, in the window with most members; *ties: how many others are too close to
 * distinguish (at most one point later); ties[0..most-1] get the first of these. NULL: no memory. */
const struct hk_fleet_sensor *hk_incident_first(const struct hk_incidents *incidents, const struct hk_incident *incident,
                                                const struct hk_fleet_sensor **ties, uint32_t most, uint32_t *n_ties);
/* Its n members in the order of their first alerts; the caller frees the list. NULL: no memory. */
const struct hk_fleet_sensor **hk_incident_in_order(const struct hk_incident *incident);
const struct hk_fleet_sensor *hk_incident_strongest(const struct hk_incident *incident);

#endif
