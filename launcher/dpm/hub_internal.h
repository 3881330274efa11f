/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hub_internal.h: declare what the files of the hub share. See hub.h.
 */
#ifndef XR_LAUNCHER_DPM_HUB_INTERNAL_H
#define XR_LAUNCHER_DPM_HUB_INTERNAL_H

#include "launcher/dpm/hub.h"
#include "launcher/dpm/nameserver.h"
#include "lib/base/list.h"

#define XR_HUB_PAST 256   /* ended jobs whose names are kept */

/* The state of a rank; XR_FATE_BROKEN: the client is lost, the rank lives. */
enum { XR_FATE_ENDED = 1, XR_FATE_FAILED = 2, XR_FATE_BY_SIGNAL = 4, XR_FATE_BROKEN = 8 };

/* A relation to another job: connected, or both were related to a job that has ended. */
struct xr_hub_tie {
    uint32_t job;
    bool connected;
};

/* The agents of a job to which the job info of another job was sent. */
struct xr_hub_sent_info {
    struct rk_link link;
    uint32_t about;
    bool node[];
};

struct xr_hub_job {
    uint32_t number;
    struct xr_job info;
    bool has_info, up, gone; /* the job info has come; the ranks run; the job has ended */
    bool stalled;         /* no rank makes progress */
    uint8_t *fate;      /* [info.size] XR_FATE_ */
    uint32_t *left;     /* [info.napps] ranks that have not ended */
    uint32_t *on_host;  /* [info.nhosts] the same by host */
    uint32_t nended, nbroken;
    struct xr_hub_tie *ties; /* kept on both sides; none to a job that was dropped */
    uint32_t nties;
    struct rk_link sent; /* struct xr_hub_sent_info */
    uint32_t parent; /* the job that spawned it, or XR_NO_JOB */
    struct xr_rpc_origin spawner; /* the agent that waits for the start, if starting */
    bool starting;
};

struct xr_hub {
    struct event_base *base;
    bool continue_on_failure;
    const struct xr_hub_ops *ops;
    void *arg;
    struct xr_hub_job **jobs; /* [njobs] by number */
    uint32_t njobs, next_job, next_id;
    char *past[XR_HUB_PAST]; /* a ring of names */
    uint32_t npast;
    unsigned depth; /* of nested calls into the hub */
    bool has_gone;  /* a job has ended and is dropped when the outermost call returns */
    struct xr_nameserver *names;
    struct xr_group_ops *group_ops;
    struct rk_link dmodex_requests;
};

/* hub_jobs.c: the jobs and their relations. */
/* NULL if the job was dropped. */
struct xr_hub_job *xr_hub_job_of(const struct xr_hub *h, uint32_t number);
/* By name. Returns XR_NO_JOB if there is none. */
uint32_t xr_hub_find_job(const struct xr_hub *h, const char *id);
/* Is it the name of one of the last XR_HUB_PAST jobs that have ended? */
bool xr_hub_is_past(const struct xr_hub *h, const char *id);
/* NULL at the limit or without memory. */
struct xr_hub_job *xr_hub_add_job(struct xr_hub *h);
void xr_hub_free_jobs(struct xr_hub *h);
bool xr_hub_connected(const struct xr_hub_job *j, uint32_t other);
void xr_hub_connect(struct xr_hub *h, uint32_t a, uint32_t b);
void xr_hub_disconnect(struct xr_hub *h, uint32_t a, uint32_t b);
/* [h->njobs] The jobs that are related to this one, directly or by others: a team may hold ranks of all. NULL without
 * memory. Caller frees. */
bool *xr_hub_related(const struct xr_hub *h, const struct xr_hub_job *j);
bool xr_hub_on_job_info(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* Pack a u32 and, if it is 1, the job info: once for each agent that requests it. */
void xr_hub_pack_job_info(struct xr_hub *h, const struct xr_rpc_origin *from, const struct xr_hub_job *about,
                          struct xr_packer *p);
/* Called at the begin and the end of each call into the hub. */
void xr_hub_enter(struct xr_hub *h);
void xr_hub_leave(struct xr_hub *h);

/* hub_requests.c: XR_UP_RPC. */
bool xr_hub_on_request(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
rank_status_t xr_hub_open_services(struct xr_hub *h);

/* hub_answer.c: the answers to it. */
/* Pack destination and status. */
void xr_hub_begin_answer(const struct xr_rpc_origin *to, struct xr_packer *p, enum xr_rpc_status status);
/* Empties the packer. */
void xr_hub_send_answer(struct xr_hub *h, const struct xr_rpc_origin *to, struct xr_packer *p);
/* Without data. */
void xr_hub_answer(struct xr_hub *h, const struct xr_rpc_origin *to, enum xr_rpc_status status);
/* With data, and the job info of a job if about is not NULL. */
void xr_hub_answer_with(struct xr_hub *h, const struct xr_rpc_origin *to, enum xr_rpc_status status,
                        const void *data, size_t len, const struct xr_hub_job *about);
/* To the agent that waits for the start of a job. No-op if there is none. */
void xr_hub_answer_spawn(struct xr_hub *h, struct xr_hub_job *j, enum xr_rpc_status status);

/* hub_dmodex.c: modex requests for ranks of other jobs. */
void xr_hub_request_dmodex(struct xr_hub *h, const struct xr_rpc_origin *from, struct xr_unpacker *u);
bool xr_hub_on_dmodex(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* A job has ended: drop the requests from it and to it. */
void xr_hub_drop_dmodex(struct xr_hub *h, uint32_t job);
void xr_hub_free_dmodex(struct xr_hub *h);

/* hub_exit.c: ranks and jobs that end. */
bool xr_hub_on_ended(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
bool xr_hub_on_client_lost(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
bool xr_hub_on_stalled(struct xr_hub *h, struct xr_hub_job *j, struct xr_unpacker *u);
/* A job has started: send it the failures from before its start. */
void xr_hub_send_past_ends(struct xr_hub *h, const struct xr_hub_job *j);

#endif
