/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo.h: bring the entries that a rank's rows need from other ranks.
 *
 * Only those. The plan is made once: each rank sends each owner the list of entries that it
 * wants. An exchange is then one message from each owner. In a vector the
 * entries that came from others, the ghosts, lie behind the rank's own.
 */
#ifndef HALO_H
#define HALO_H

#include "rows.h"

/* One peer that we exchange with. */
struct halo_peer {
    int rank;
    int64_t count;  /* entries in the message */
    int64_t offset; /* of its first one, in wanted or send */
};

struct halo {
    rank_team_t team;
    int64_t mine;   /* where the ghosts begin */
    int64_t ghosts; /* how many there are */
    int nfrom, nto;
    struct halo_peer *from; /* offset: place among the ghosts */
    struct halo_peer *to;   /* offset: place in send_index and send_value */
    int64_t *send_index;    /* entries of mine that others want */
    double *send_value;     /* packed */
    rank_request_t *reqs;   /* nfrom + nto */
};

/*
 * Make the plan for a matrix, and renumber the columns of a: own ones count
 * from 0, ghosts from a->mine on. Collective.
 */
rank_status_t halo_plan(struct rows *a, struct halo *out);

/* Fill the ghosts of x, which has mine + ghosts entries. Collective among the ranks that exchange. */
rank_status_t halo_exchange(struct halo *h, double *x);

/* Free what halo_plan made; an all-zero struct is fine. */
void halo_free(struct halo *h);

#endif
