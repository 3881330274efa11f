/*
 * hub_parts.h: what the files of the hub share; see hub.h.
 */
#ifndef RK_LAUNCHER_HUB_PARTS_H
#define RK_LAUNCHER_HUB_PARTS_H

#include "launcher/hub.h"
#include "launcher/names.h"
#include "lib/base/list.h"

#define RK_HUB_END_MS 400 /* between TERM and KILL of a job that ends because of another */

struct rk_hub_job {
    struct rk_job outline;
    bool known, gone; /* its outline has come; it is over */
    bool *ended, *broken; /* [outline.size]; broken: the rank lives, but not its client */
    uint32_t *left;   /* [outline.napps] ranks that have not ended */
    uint32_t nended, nbroken;
    uint32_t *friends, nfriends; /* jobs that it is connected with */
    uint32_t parent; /* the job that has spawned it, or RK_NO_JOB */
    struct rk_gather_who spawner; /* who waits for its start, if starting */
    bool starting;
};

struct rk_hub {
    bool go_on;
    const struct rk_hub_ops *ops;
    void *arg;
    struct rk_hub_job **jobs;
    uint32_t njobs, next_id;
    struct rk_names *names;
    struct rk_gathers *gathers;
    struct rk_link questions;
};

/* hub_jobs.c: which there are, and which are connected. */
struct rk_hub_job *rk_hub_job_of(const struct rk_hub *h, uint32_t i);
/* By its name; RK_NO_JOB: there is none. */
uint32_t rk_hub_find_job(const struct rk_hub *h, const char *id);
/* Its number, or RK_NO_JOB. */
uint32_t rk_hub_add_job(struct rk_hub *h);
void rk_hub_free_job(struct rk_hub_job *j);
bool rk_hub_connected(const struct rk_hub *h, uint32_t a, uint32_t b);
void rk_hub_add_friend(struct rk_hub *h, uint32_t a, uint32_t b);
void rk_hub_remove_friend(struct rk_hub *h, uint32_t a, uint32_t b);
bool rk_hub_take_outline(struct rk_hub *h, uint32_t job, struct rk_unpacker *u);

/* hub_errands.c: RK_UP_ERRAND, and the answers to it. */
bool rk_hub_take_errand(struct rk_hub *h, uint32_t job, struct rk_unpacker *u);
/* With data and the outline of one job, or none. */
void rk_hub_answer_with(struct rk_hub *h, const struct rk_gather_who *who, enum rk_errand_status status,
                        const void *data, size_t len, const struct rk_hub_job *about);
/* To who waits for the start of a job, if anybody does. */
void rk_hub_tell_started(struct rk_hub *h, struct rk_hub_job *j, enum rk_errand_status status);
rank_status_t rk_hub_open_errands(struct event_base *base, struct rk_hub *h);

/* hub_questions.c: what one job asks about another's ranks. */
void rk_hub_ask(struct rk_hub *h, const struct rk_gather_who *who, struct rk_unpacker *u);
bool rk_hub_take_modex(struct rk_hub *h, uint32_t job, struct rk_unpacker *u);
/* Nobody in a job that is over answers any more, or waits. */
void rk_hub_drop_questions(struct rk_hub *h, uint32_t job);
void rk_hub_free_questions(struct rk_hub *h);

/* hub_ends.c: ranks and jobs that end. */
bool rk_hub_take_ended(struct rk_hub *h, uint32_t job, struct rk_unpacker *u);
bool rk_hub_take_broken(struct rk_hub *h, uint32_t job, struct rk_unpacker *u);

#endif
