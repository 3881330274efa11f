/* hub_jobs.c: the jobs that the hub knows, and which of them are connected. See hub_parts.h. */
#include "launcher/hub_parts.h"
#include "launcher/outline.h"

#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 100000u

struct rk_hub_job *rk_hub_job_of(const struct rk_hub *h, uint32_t i)
{
    return i < h->njobs ? h->jobs[i] : NULL;
}

void rk_hub_free_job(struct rk_hub_job *j)
{
    if (!j)
        return;
    rk_job_clear(&j->outline);
    free(j->ended);
    free(j->broken);
    free(j->left);
    free(j->friends);
    free(j);
}

uint32_t rk_hub_add_job(struct rk_hub *h)
{
    struct rk_hub_job **longer, *j;

    if (h->njobs >= MAX_JOBS)
        return RK_NO_JOB;
    longer = realloc(h->jobs, (h->njobs + 1) * sizeof(struct rk_hub_job *));
    if (!longer)
        return RK_NO_JOB;
    h->jobs = longer;
    j = calloc(1, sizeof(*j));
    if (!j)
        return RK_NO_JOB;
    j->parent = RK_NO_JOB;
    h->jobs[h->njobs] = j;
    return h->njobs++;
}

bool rk_hub_connected(const struct rk_hub *h, uint32_t a, uint32_t b)
{
    const struct rk_hub_job *j = h->jobs[a];

    for (uint32_t i = 0; i < j->nfriends; i++) {
        if (j->friends[i] == b)
            return true;
    }
    return false;
}

void rk_hub_add_friend(struct rk_hub *h, uint32_t a, uint32_t b)
{
    struct rk_hub_job *j = h->jobs[a];
    uint32_t *longer;

    if (a == b || rk_hub_connected(h, a, b))
        return;
    longer = realloc(j->friends, (j->nfriends + 1) * sizeof(*longer));
    if (!longer)
        return; /* its failure will not end the other: no harm but a longer life */
    j->friends = longer;
    j->friends[j->nfriends++] = b;
}

void rk_hub_remove_friend(struct rk_hub *h, uint32_t a, uint32_t b)
{
    struct rk_hub_job *j = h->jobs[a];

    for (uint32_t i = 0; i < j->nfriends; i++) {
        if (j->friends[i] == b)
            j->friends[i--] = j->friends[--j->nfriends];
    }
}

bool rk_hub_take_outline(struct rk_hub *h, uint32_t job, struct rk_unpacker *u)
{
    struct rk_hub_job *j = h->jobs[job];

    if (j->known || !rk_outline_unpack(u, &j->outline) || !rk_unpack_done(u))
        return false;
    if (rk_hub_find_job(h, j->outline.id) != RK_NO_JOB)
        return false;
    j->ended = calloc(j->outline.size, sizeof(*j->ended));
    j->broken = calloc(j->outline.size, sizeof(*j->broken));
    j->left = calloc(j->outline.napps, sizeof(*j->left));
    for (uint32_t i = 0; j->left && i < j->outline.napps; i++)
        j->left[i] = j->outline.apps[i].n;
    j->known = j->ended && j->broken && j->left;
    return j->known;
}

uint32_t rk_hub_find_job(const struct rk_hub *h, const char *id)
{
    for (uint32_t i = 0; i < h->njobs; i++) {
        if (h->jobs[i]->known && strcmp(h->jobs[i]->outline.id, id) == 0)
            return i;
    }
    return RK_NO_JOB;
}

const char *rk_hub_name(const struct rk_hub *h, uint32_t job)
{
    const struct rk_hub_job *j = rk_hub_job_of(h, job);

    return j && j->known ? j->outline.id : NULL;
}

uint32_t rk_hub_ranks_on(const struct rk_hub *h, const char *host)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < h->njobs; i++) {
        const struct rk_hub_job *j = h->jobs[i];
        for (uint32_t r = 0; j->known && !j->gone && r < j->outline.size; r++)
            n += !j->ended[r] && strcmp(j->outline.hosts[j->outline.host_of[r]], host) == 0;
    }
    return n;
}
