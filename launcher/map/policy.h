/*
 * policy.h: what the user said about hosts and places.
 */
#ifndef RK_LAUNCHER_MAP_POLICY_H
#define RK_LAUNCHER_MAP_POLICY_H

#include "launcher/map/mapper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rk_where {
    struct rk_place_request request; /* without what stands in files */
    const char *hosts, *rankfile; /* or NULL */
    const char **hostfiles;       /* [nhostfiles] */
    uint32_t nhostfiles;
    bool show_map, dry_run;
    const char *json_map; /* or NULL */
    /* how agents are started */
    const char *agent;     /* NULL: ssh */
    const char *ssh_args;  /* or NULL */
    const char *interface; /* or NULL */
    const char *given;     /* the hosts that hosts and a hostfile would give, as --host has them; or NULL */
    uint32_t fanout;       /* 0: not said */
    double start_timeout;  /* seconds; 0: not said */
};

/* Each reads the value of one option; false with a text in err. */
bool rk_where_map_by(struct rk_where *w, const char *value, char *err, size_t errlen);
bool rk_where_rank_by(struct rk_where *w, const char *value, char *err, size_t errlen);
bool rk_where_bind(struct rk_where *w, const char *value, char *err, size_t errlen);
bool rk_where_cpus(struct rk_where *w, const char *value, char *err, size_t errlen);
bool rk_where_fanout(struct rk_where *w, const char *value, char *err, size_t errlen);
bool rk_where_start_timeout(struct rk_where *w, const char *value, char *err, size_t errlen);

/* What is said when all has been read: what does not go together. */
bool rk_where_check(const struct rk_where *w, char *err, size_t errlen);

#endif
