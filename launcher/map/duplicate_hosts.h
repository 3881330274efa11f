/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * duplicate_hosts.h: find hosts of a plan that are names of one machine.
 */
#ifndef XR_LAUNCHER_MAP_DUPLICATE_HOSTS_H
#define XR_LAUNCHER_MAP_DUPLICATE_HOSTS_H

#include "launcher/map/plan.h"

/*
 * Call when all machines are known. Stores in each host how many names its machine has. Returns how many hosts
 * are another name of an earlier one; line describes them: "a and b are one host".
 */
uint32_t xr_duplicate_hosts_find(struct xr_plan *plan, char *line, size_t len);
/*
 * Return whether several names of one machine are allowed: a command other than ssh may start several hosts on
 * one machine.
 */
bool xr_duplicate_hosts_allowed(const struct xr_plan *plan);

#endif
