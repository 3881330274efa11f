/* job_link.c: what a front end, as one of several jobs, says to the hub and hears from it. See front_jobs.h. */
#include "launcher/frontend/job_link_internal.h"
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/job_info.h"
#include "launcher/frontend/spawned_xrun.h"

#include <signal.h>
#include <stdlib.h>

/* --------------------------------------------------------------------- up */

static bool say(struct front *f, enum rk_word word, struct rk_packer *p)
{
    struct rk_front_jobs *j = f->jobs;
    struct rk_unpacker u = {p->data, p->len, p->failed};
    bool ok = true;

    if (j->hub) {
        ok = rk_hub_take(j->hub, 0, word, &u);
        rk_packer_free(p);
    } else if (j->link) {
        rk_wire_send_to(j->link, RK_NODE_NEXT, word, p);
    } else {
        rk_packer_free(p);
    }
    return ok;
}

static void on_modex(void *arg, void *token, enum rk_found found, const void *data, size_t len)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, (uint32_t)(uintptr_t)token);
    rk_pack_u32(&p, found);
    rk_pack_bytes(&p, data, len);
    say(arg, RK_UP_MODEX, &p);
}

static void on_asked(void *arg, uint32_t rank, uint32_t id)
{
    struct front *f = arg;

    (void)rank; /* nobody asks a front end */
    rk_modexes_found(f->jobs->modexes, id, false, NULL, 0);
}

static const struct rk_modex_ops modex_ops = {.on_answer = on_modex, .on_asked = on_asked};

/* ------------------------------------------------------------------- down */

static bool take_answer(struct front *f, struct rk_unpacker *u)
{
    uint32_t node = rk_unpack_u32(u);
    struct rk_packer p = {0};

    if (u->failed || node >= f->nnodes)
        return false;
    rk_pack_raw(&p, u->at, u->left);
    rk_tree_send(f->tree, node, RK_MSG_ERRAND_DONE, &p);
    return true;
}

static bool take_question(struct front *f, struct rk_unpacker *u)
{
    uint32_t id = rk_unpack_u32(u), rank = rk_unpack_u32(u), timeout_s = rk_unpack_u32(u), node;
    void *token = (void *)(uintptr_t)id;

    if (!rk_unpack_done(u))
        return false;
    node = f->told && rank < f->job->size ? f->job->host_of[rank] : RK_NO_HOST;
    if (node == RK_NO_HOST || f->nodes[node].done || f->nodes[node].gone)
        on_modex(f, token, RK_FOUND_NEVER, NULL, 0);
    else
        rk_modexes_ask(f->jobs->modexes, node, rank, timeout_s, token);
    return true;
}

static bool take_end(struct front *f, struct rk_unpacker *u)
{
    int code = (int)rk_unpack_u32(u);
    uint32_t ms = rk_unpack_u32(u);
    int sig = (int)rk_unpack_u32(u);

    if (!rk_unpack_done(u) || sig < 0 || sig > 64)
        return false;
    f->jobs->obeying = !f->jobs->hub; /* the first xrun still has others to end */
    if (!sig)
        rk_front_blame(f); /* it may have been one of our own */
    if (sig) {
        rk_front_force(f, code, sig, ms);
    } else if (!f->done && !f->ending) {
        rk_report_cause(f->report, "a job that is connected with this one failed");
        rk_stream_say(f->err, "xrun: error: a job that is connected with %s failed; ending the job", f->job->id);
        rk_front_judge(f, code);
        rk_front_end_job(f);
    }
    return true;
}

bool rk_front_hear(struct front *f, uint32_t word, struct rk_unpacker *u)
{
    struct rk_packer p = {0};
    int sig;

    switch (word) {
    case RK_DOWN_ANSWER:
        return take_answer(f, u);
    case RK_DOWN_MODEX:
        return take_question(f, u);
    case RK_DOWN_DIED:
        rk_pack_raw(&p, u->at, u->left);
        rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_OTHER_DIED, &p);
        return true;
    case RK_DOWN_NOTICE:
        if (f->ending)
            return true;
        rk_pack_raw(&p, u->at, u->left);
        rk_tree_send(f->tree, RK_NODE_ALL, RK_MSG_OTHER_NOTICE, &p);
        return true;
    case RK_DOWN_END:
        return take_end(f, u);
    case RK_DOWN_AGAIN:
        if (!rk_unpack_done(u))
            return false;
        rk_life_again(f->life);
        return true;
    case RK_DOWN_HOPELESS:
        if (!rk_unpack_done(u))
            return false;
        rk_front_hopeless(f);
        return true;
    case RK_DOWN_SIGNAL:
        sig = (int)rk_unpack_u32(u);
        if (!rk_unpack_done(u) || sig < 1 || sig > 64)
            return false;
        rk_front_forward(f, sig);
        return true;
    default:
        return false;
    }
}

/* ----------------------------------------------------- a spawned one's link */

static bool on_word(void *arg, uint32_t node, uint32_t kind, struct rk_unpacker *u)
{
    (void)node;
    return rk_front_hear(arg, kind, u);
}

static void on_link_closed(void *arg, const char *why)
{
    struct front *f = arg;

    (void)why;
    rk_wire_close(f->jobs->link);
    f->jobs->link = NULL;
    if (f->done) {
        rk_front_leave_if_over(f); /* it may have had something left to say */
        return;
    }
    if (!f->ending)
        rk_stream_say(f->err, "xrun: error: the first xrun is gone; ending the job %s", f->job->id);
    rk_front_force(f, 1, SIGTERM, rk_front_grace(f, RK_FAILURE_GRACE_MS));
}

static void on_link_drained(void *arg)
{
    rk_front_leave_if_over(arg);
}

static const struct rk_wire_ops link_ops = {on_word, on_link_closed, on_link_drained, NULL};

/* ------------------------------------------------------- what the front end says */

rank_status_t rk_front_jobs_told(struct front *f)
{
    struct rk_packer p = {0};
    rank_status_t st = rk_modexes_open(f->base, f->tree, f->gone, RK_NODE_FRONT, &modex_ops, f, &f->jobs->modexes);

    if (st)
        return st;
    rk_outline_pack(f->job, &p);
    return say(f, RK_UP_OUTLINE, &p) ? RANK_OK : RANK_ERR_NO_MEMORY;
}

/* Of hosts that are lost nothing more will come. Who has asked for the job is to hear of it if any of it runs. */
static void tell_if_up(struct front *f)
{
    struct rk_packer p = {0};
    bool any = false;

    for (uint32_t i = 0; i < f->nnodes; i++) {
        const struct node *n = &f->nodes[i];
        if (f->plan->placement.host[i].ranks == 0)
            continue;
        if (!n->started && !n->gone)
            return;
        any = any || n->started;
    }
    if (!any || f->jobs->up)
        return;
    f->jobs->up = true;
    say(f, RK_UP_STARTED, &p);
}

void rk_front_jobs_started(struct front *f, uint32_t node)
{
    f->nodes[node].started = true;
    tell_if_up(f);
}

void rk_front_jobs_ended(struct front *f, uint32_t rank, bool failed, bool by_signal)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, rank);
    rk_pack_u32(&p, failed);
    rk_pack_u32(&p, by_signal);
    say(f, RK_UP_ENDED, &p);
}

void rk_front_jobs_still(struct front *f, bool still)
{
    struct rk_packer p = {0};

    rk_pack_u32(&p, still);
    say(f, RK_UP_STILL, &p);
}

void rk_front_jobs_notice(struct front *f, const struct rk_notice *notice)
{
    struct rk_packer p = {0};

    rk_notice_pack(notice, &p);
    say(f, RK_UP_NOTICE, &p);
}

void rk_front_jobs_broken(struct front *f, struct rk_unpacker *u)
{
    struct rk_packer p = {0};

    if (!f->told)
        return;
    rk_pack_raw(&p, u->at, u->left);
    say(f, RK_UP_BROKEN, &p);
}

void rk_front_jobs_lost(struct front *f, uint32_t node)
{
    if (!f->told)
        return;
    for (uint32_t i = f->of_host.first[node]; i < f->of_host.first[node + 1]; i++)
        rk_front_jobs_ended(f, f->of_host.ranks[i], true, true);
    if (f->options->go_on && !f->ending)
        tell_if_up(f);
}

void rk_front_jobs_over(struct front *f)
{
    /* Who is to end with it has been told. */
    if (f->jobs && f->jobs->hub)
        rk_hub_gone(f->jobs->hub, 0, 0);
}

bool rk_front_jobs_speaking(const struct front *f)
{
    return f->jobs && f->jobs->link && rk_wire_backlog(f->jobs->link) > 0;
}

bool rk_front_jobs_take(struct front *f, uint32_t kind, struct rk_unpacker *u)
{
    struct rk_packer p = {0};

    if (!f->told)
        return false;
    if (kind == RK_MSG_MODEX_ANSWER)
        return rk_modexes_take(f->jobs->modexes, kind, u);
    rk_pack_raw(&p, u->at, u->left);
    return say(f, RK_UP_ERRAND, &p);
}

void rk_front_jobs_end(struct front *f, int sig, uint32_t ms)
{
    struct rk_front_jobs *j = f->jobs;
    struct rk_packer p = {0};

    if (!j || j->obeying)
        return;
    if (j->hub) {
        rk_hub_end_others(j->hub, 0, f->forced, f->code, ms, f->forced ? sig : 0);
    } else {
        rk_pack_u32(&p, (uint32_t)f->code);
        say(f, RK_UP_FAILING, &p);
    }
}

/* --------------------------------------------------------------- start and end */

rank_status_t rk_front_jobs_open(struct front *f)
{
    struct rk_spawned *spawned = f->options->spawned;
    struct rk_front_jobs *j = calloc(1, sizeof(*j));
    rank_status_t st;

    if (!j)
        return RANK_ERR_NO_MEMORY;
    f->jobs = j;
    rk_list_init(&j->children);
    if (!spawned)
        return rk_hub_open(f->base, f->options->go_on, &rk_front_hub_ops, f, &j->hub);
    st = rk_wire_open(f->base, spawned->link, &link_ops, f, &j->link);
    if (!st)
        spawned->link = -1;
    return st;
}

void rk_front_jobs_close(struct front *f)
{
    struct rk_front_jobs *j = f->jobs;

    if (!j)
        return;
    if (!rk_list_empty(&j->children)) {
        f->orphans = true;
        rk_front_wait_for_children(f);
    }
    rk_wire_close(j->link);
    rk_modexes_close(j->modexes);
    rk_hub_close(j->hub);
    free(j);
    f->jobs = NULL;
}
