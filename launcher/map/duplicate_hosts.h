/*
 * duplicate_hosts.h: hosts of a plan that are names of one machine.
 */
#ifndef XR_LAUNCHER_MAP_DUPLICATE_HOSTS_H
#define XR_LAUNCHER_MAP_DUPLICATE_HOSTS_H

#include "launcher/map/plan.h"

/*
 * All machines are known: which hosts share one? Each learns how many names its machine has. Returns how many are
 * another name of an earlier one; line says which: "a and b are one host".
 */
uint32_t xr_twins_find(struct xr_plan *plan, char *line, size_t len);
/* Is that what the user wants? What a command other than ssh makes of names may be several hosts on one machine. */
bool xr_twins_allowed(const struct xr_plan *plan);

#endif
