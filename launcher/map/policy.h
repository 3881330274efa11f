/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h: parse the user's options about hosts and places.
 */
#ifndef XR_LAUNCHER_MAP_POLICY_H
#define XR_LAUNCHER_MAP_POLICY_H

#include "launcher/map/mapper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_policy {
    struct xr_place_request request; /* without the contents of files */
    const char *hosts, *rankfile; /* or NULL */
    const char **hostfiles;       /* [nhostfiles] */
    uint32_t nhostfiles;
    uint32_t gpus_per_rank; /* 0: not given */
    uint32_t nics_per_rank; /* 0: not given */
    const char *gpu_bind, *nic_bind; /* closest, none or map:LIST; or NULL */
    const char *xml;        /* hwloc's XML of the machine of all hosts; or NULL */
    bool show_map, dry_run;
    bool topo; /* print machine and pairs, and start no rank */
    const char *json_map; /* or NULL */
    /* how agents are started */
    const char *agent;     /* NULL: ssh */
    const char *ssh_args;  /* or NULL */
    const char *interface; /* or NULL */
    const char *given;     /* all hosts of hosts and a hostfile, as --host has them; or NULL */
    uint32_t fanout;       /* 0: not given */
    double start_timeout;  /* seconds; 0: not given */
};

/* Parse the value of one option. Returns false with a text in err. */
bool xr_policy_map_by(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_rank_by(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_bind(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_cpus(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_gpus(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_gpu_bind(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_nics(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_nic_bind(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_fanout(struct xr_policy *w, const char *value, char *err, size_t errlen);
bool xr_policy_start_timeout(struct xr_policy *w, const char *value, char *err, size_t errlen);

/* Return what agents need: "" if no option is about GPUs, else "none", "closest", or the numbers of a list. */
const char *xr_policy_gpu_words(const struct xr_policy *w);
/* The same for NICs. */
const char *xr_policy_nic_words(const struct xr_policy *w);

/* Check that the options are compatible, after all are parsed. Returns false with a text in err. */
bool xr_policy_check(const struct xr_policy *w, char *err, size_t errlen);

#endif
