/*
 * hub_internal.h: what the files of the hub share; see hub.h.
 */
#ifndef RK_LAUNCHER_DPM_HUB_INTERNAL_H
#define RK_LAUNCHER_DPM_HUB_INTERNAL_H

#include "launcher/dpm/hub.h"
#include "launcher/dpm/nameserver.h"
#include "lib/base/list.h"

#define RK_HUB_END_MS 400 /* between TERM and KILL of a job that ends because of another */
#define RK_HUB_PAST 256   /* jobs that are over, whose names are still known */

/* What has become of a rank. */
enum { RK_FATE_ENDED = 1, RK_FATE_FAILED = 2, RK_FATE_BY_SIGNAL = 4, RK_FATE_BROKEN = 8 /* it lives, but not its client */ };

/* Two jobs have to do with each other: they are connected, or both were with one that is over. */
struct rk_hub_tie {
    uint32_t job;
    bool connected;
};

/* Which agents have been told the outline of another job. */
struct rk_hub_told {
    struct rk_link link;
    uint32_t about;
    bool node[];
};

struct rk_hub_job {
    uint32_t number;
    struct rk_job outline;
    bool known, up, gone; /* its outline has come; its ranks run; it is over */
    bool still;           /* no rank of it makes progress */
    uint8_t *fate;      /* [outline.size] RK_FATE_ */
    uint32_t *left;     /* [outline.napps] ranks that have not ended */
    uint32_t *on_host;  /* [outline.nhosts] the same */
    uint32_t nended, nbroken;
    struct rk_hub_tie *ties; /* of both sides, but those that are no more */
    uint32_t nties;
    struct rk_link told; /* struct rk_hub_told */
    uint32_t parent; /* the job that has spawned it, or RK_NO_JOB */
    struct rk_asker spawner; /* who waits for its start, if starting */
    bool starting;
};

struct rk_hub {
    struct event_base *base;
    bool go_on;
    const struct rk_hub_ops *ops;
    void *arg;
    struct rk_hub_job **jobs; /* [njobs] by number */
    uint32_t njobs, next_job, next_id;
    char *past[RK_HUB_PAST]; /* a ring of names */
    uint32_t npast;
    unsigned depth; /* of calls into the hub, which may come out of one another */
    bool untidy;    /* a job is over: it may be forgotten once the outermost call returns */
    struct rk_names *names;
    struct rk_gathers *gathers;
    struct rk_link questions;
};

/* hub_jobs.c: which there are, and which have to do with each other. */
/* NULL: it was forgotten. */
struct rk_hub_job *rk_hub_job_of(const struct rk_hub *h, uint32_t number);
/* By its name; RK_NO_JOB: there is none. */
uint32_t rk_hub_find_job(const struct rk_hub *h, const char *id);
/* Was there one, not long ago? */
bool rk_hub_is_past(const struct rk_hub *h, const char *id);
/* NULL: there is no room. */
struct rk_hub_job *rk_hub_add_job(struct rk_hub *h);
void rk_hub_free_jobs(struct rk_hub *h);
bool rk_hub_connected(const struct rk_hub_job *j, uint32_t other);
void rk_hub_connect(struct rk_hub *h, uint32_t a, uint32_t b);
void rk_hub_disconnect(struct rk_hub *h, uint32_t a, uint32_t b);
/* Which of h->jobs have to do with this one, directly or by others: a team may hold ranks of all. NULL: no memory. */
bool *rk_hub_concerned(const struct rk_hub *h, const struct rk_hub_job *j);
bool rk_hub_take_outline(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
/* A u32 and, if it is 1, the outline of a job: once for each agent that asks. */
void rk_hub_pack_outline(struct rk_hub *h, const struct rk_asker *who, const struct rk_hub_job *about, struct rk_packer *p);
/* Round each call into the hub. */
void rk_hub_enter(struct rk_hub *h);
void rk_hub_leave(struct rk_hub *h);

/* hub_requests.c: RK_UP_ERRAND, and the answers to it. */
bool rk_hub_take_errand(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
/* With data and the outline of one job, or none. */
void rk_hub_answer_with(struct rk_hub *h, const struct rk_asker *who, enum rk_errand_status status,
                        const void *data, size_t len, const struct rk_hub_job *about);
/* To who waits for the start of a job, if anybody does. */
void rk_hub_tell_started(struct rk_hub *h, struct rk_hub_job *j, enum rk_errand_status status);
rank_status_t rk_hub_open_errands(struct rk_hub *h);

/* hub_dmodex.c: what one job asks about another's ranks. */
void rk_hub_ask(struct rk_hub *h, const struct rk_asker *who, struct rk_unpacker *u);
bool rk_hub_take_modex(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
/* Nobody in a job that is over answers any more, or waits. */
void rk_hub_drop_questions(struct rk_hub *h, uint32_t job);
void rk_hub_free_questions(struct rk_hub *h);

/* hub_exit.c: ranks and jobs that end. */
bool rk_hub_take_ended(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
bool rk_hub_take_broken(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
bool rk_hub_take_still(struct rk_hub *h, struct rk_hub_job *j, struct rk_unpacker *u);
/* A job is up: it is told of those who have died before it could hear of it. */
void rk_hub_tell_past_ends(struct rk_hub *h, const struct rk_hub_job *j);

#endif
