/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_internal.h: what the files of the hub share; see hub.h.
 */
#ifndef XR_LAUNCHER_DPM_HUB_INTERNAL_H
#define XR_LAUNCHER_DPM_HUB_INTERNAL_H

#include "launcher/dpm/hub.h"
#include "launcher/dpm/nameserver.h"
#include "lib/base/list.h"

#define XR_HUB_END_MS 400 /* between TERM and KILL of a job that ends because of another */
#define XR_HUB_PAST 256   /* jobs that are over, whose names are still known */

/* What has become of a rank. */
enum { XR_FATE_ENDED = 1, XR_FATE_FAILED = 2, XR_FATE_BY_SIGNAL = 4, XR_FATE_BROKEN = 8 /* it lives, but not its client */ };

/* Two jobs have to do with each other: they are connected, or both were with one that is over. */
struct xr_hub_tie {
    uint32_t job;
    bool connected;
};

/* Which agents have been told the outline of another job. */
struct xr_hub_sent_info {
    struct rk_link link;
    uint32_t about;
    bool node[];
};

struct xr_hub_job {
    uint32_t number;
    struct xr_job outline;
    bool known, up, gone; /* its outline has come; its ranks run; it is over */
    bool still;           /* no rank of it makes progress */
    uint8_t *fate;      /* [outline.size] XR_FATE_ */
    uint32_t *left;     /* [outline.napps] ranks that have not ended */
    uint32_t *on_host;  /* [outline.nhosts] the same */
    uint32_t nended, nbroken;
    struct xr_hub_tie *ties; /* of both sides, but those that are no more */
    uint32_t nties;
    struct rk_link told; /* struct xr_hub_sent_info */
    uint32_t parent; /* the job that has spawned it, or XR_NO_JOB */
    struct xr_asker spawner; /* who waits for its start, if starting */
    bool starting;
};

struct xr_hub {
    struct event_base *base;
    bool go_on;
    const struct xr_hub_ops *ops;
    void *arg;
    struct xr_hub_job **jobs; /* [njobs] by number */
    uint32_t njobs, next_job, next_id;
    char *past[XR_HUB_PAST]; /* a ring of names */
    uint32_t npast;
    unsigned depth; /* of calls into the hub, which may come out of one another */
    bool has_gone;    /* a job is over: it may be forgotten once the outermost call returns */
    struct xr_names *names;
    struct xr_group_ops *group_ops;
    struct rk_link modexes;
};

/* hub_jobs.c: which there are, and which have to do with each other. */
/* NULL: it was forgotten. */
struct xr_hub_job *xr_hub_job_of(const struct xr_hub *h, uint32_t number);
/* By its name; XR_NO_JOB: there is none. */
uint32_t xr_hub_find_job(const struct xr_hub *h, const char *id);
/* Was there one, not long ago? */
bool xr_hub_is_past(const struct xr_hub *h, const char *id);
/* NULL: there is no room. */
struct xr_hub_job *xr_hub_add_job(struct xr_hub *h);
void xr_hub_free_jobs(struct xr_hub *h);
bool xr_hub_connected(const struct xr_hub_job *j, uint32_t other);
void xr_hub_connect(struct xr_hub *h, uint32_t a, uint32_t b);
void xr_hub_disconnect(struct xr_hub *h, uint32_t a, uint32_t b);
/* Which of h->jobs have to do with this one, directly or by others: a team may hold ranks of all. NULL: no memory. */
bool *xr_hub_related(const struct xr_hub *h, const struct xr_hub_job *j);
bool xr_hub_on_job_info(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* A u32 and, if it is 1, the outline of a job: once for each agent that asks. */
void xr_hub_pack_job_info(struct xr_hub *h, const struct xr_asker *who, const struct xr_hub_job *about, struct xr_packer *p);
/* Round each call into the hub. */
void xr_hub_enter(struct xr_hub *h);
void xr_hub_leave(struct xr_hub *h);

/* hub_requests.c: XR_UP_ERRAND. */
bool xr_hub_on_request(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
rank_status_t xr_hub_open_services(struct xr_hub *h);

/* hub_answer.c: the answers to it. */
/* Where it goes, and the status. */
void xr_hub_begin_answer(const struct xr_asker *who, struct xr_packer *p, enum xr_errand_status status);
/* Empties the packer. */
void xr_hub_send_answer(struct xr_hub *h, const struct xr_asker *who, struct xr_packer *p);
/* Without data. */
void xr_hub_answer(struct xr_hub *h, const struct xr_asker *who, enum xr_errand_status status);
/* With data and the outline of one job, or none. */
void xr_hub_answer_with(struct xr_hub *h, const struct xr_asker *who, enum xr_errand_status status,
                        const void *data, size_t len, const struct xr_hub_job *about);
/* To who waits for the start of a job, if anybody does. */
void xr_hub_answer_spawn(struct xr_hub *h, struct xr_hub_job *j, enum xr_errand_status status);

/* hub_dmodex.c: what one job asks about another's ranks. */
void xr_hub_request_modex(struct xr_hub *h, const struct xr_asker *who, struct xr_unpacker *u);
bool xr_hub_on_modex(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* Nobody in a job that is over answers any more, or waits. */
void xr_hub_drop_modex(struct xr_hub *h, uint32_t job);
void xr_hub_free_modex(struct xr_hub *h);

/* hub_exit.c: ranks and jobs that end. */
bool xr_hub_on_ended(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
bool xr_hub_on_client_lost(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
bool xr_hub_on_stalled(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* A job is up: it is told of those who have died before it could hear of it. */
void xr_hub_send_past_ends(struct xr_hub *h, const struct xr_hub_job *j);

#endif
