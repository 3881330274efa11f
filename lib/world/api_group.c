/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_group.c: create a team from a list of ranks; compare and translate teams.
 *
 * The listed ranks exchange messages in a tag space of the parent: statuses go up a binomial tree to the first of
 * them, which numbers the team; id and status go down. Errors go on as statuses. A rank gives the wait up once a listed
 * rank is dead, as others may have left for that reason. What they sent for that list is discarded by the next call.
 */
#include "lib/base/fnv.h"
#include "lib/boot/boot.h"
#include "lib/core/describe.h"
#include "lib/p2p/api_request.h"
#include "lib/world/world.h"

#include <stdlib.h>
#include <string.h>

struct outcome {
    uint64_t list; /* hash of the ranks */
    uint64_t id;   /* of the new team; on the way down */
    int32_t status, reserved;
};

/* How the members reach each other: the n ranks of parent, this one at index me. */
struct circle {
    struct rank_team *parent;
    const int *ranks;
    int n, me;
    uint64_t tag, list;
    int ndead; /* dead ranks of parent, when dead was found out */
    bool dead; /* one of the listed ranks is */
};

/* Outlives the call: its receiver may have given up. */
struct outcome_send {
    struct rank_request req;
    struct outcome outcome;
};

static bool circle_is_broken(struct circle *c)
{
    if (rk_likely(c->parent->ndead == c->ndead))
        return c->dead;
    c->ndead = c->parent->ndead;
    for (int i = 0; i < c->n && !c->dead; i++) {
        const struct rk_peer *peer = rk_team_peer(c->parent, c->ranks[i]);
        c->dead = peer && peer->state == RK_PEER_DEAD;
    }
    return c->dead;
}

static void outcome_sent(struct rank_request *req, void *arg)
{
    (void)req;
    free(arg);
}

static void send_outcome(const struct circle *c, const struct outcome *v, int to)
{
    struct outcome_send *s = malloc(sizeof(*s));

    if (!s)
        return;
    s->outcome = *v;
    rk_req_init(&s->req, outcome_sent, s);
    rk_p2p_isend(c->parent, &s->outcome, sizeof(s->outcome), c->ranks[to], c->tag, RK_TEAM_COLL, &s->req);
}

struct outcome_wait {
    struct rk_wait wait;
    struct rank_request req;
    struct circle *circle;
};

static bool outcome_is_over(struct rk_wait *wait)
{
    struct outcome_wait *w = rk_container_of(wait, struct outcome_wait, wait);

    return w->req.done || circle_is_broken(w->circle);
}

static void describe_outcome(const struct rk_wait *wait, struct rk_wait_for *out)
{
    const struct outcome_wait *w = rk_container_of(wait, struct outcome_wait, wait);

    rk_describe_call(out, "rank_team_create");
    out->flags |= RK_WAIT_TEAM;
    out->team = w->circle->parent->id;
    out->team_size = (uint32_t)w->circle->parent->size;
}

static struct outcome recv_outcome(struct circle *c, int from)
{
    struct outcome_wait w = {.circle = c};
    struct outcome v;
    rank_status_t st;

    do {
        v = (struct outcome){.list = c->list};
        rk_req_init(&w.req, NULL, NULL);
        rk_p2p_irecv(c->parent, &v, sizeof(v), c->ranks[from], c->tag, RK_TEAM_COLL, &w.req);
        w.wait = (struct rk_wait){.peer = w.req.peer, .describe = describe_outcome};
        rk_wait(c->parent->ctx, &w.wait, outcome_is_over);
        if (!w.req.done)
            rk_p2p_cancel_recv(&w.req, RANK_ERR_PEER_DEAD);
        st = rk_req_await(&w.req); /* it may have matched */
    } while (!st && v.list != c->list);
    return st ? (struct outcome){.list = c->list, .status = st} : v;
}

/* Returns the first member's id, and the first error of all. */
static struct outcome circle_agree(struct circle *c, struct outcome mine)
{
    int bit = 1;

    for (; bit < c->n && !(c->me & bit); bit <<= 1) {
        struct outcome child = {.status = RANK_OK};
        if (c->me + bit < c->n)
            child = recv_outcome(c, c->me + bit);
        if (!mine.status)
            mine.status = child.status;
    }
    if (c->me > 0) {
        send_outcome(c, &mine, c->me - bit);
        mine = recv_outcome(c, c->me - bit);
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (c->me + bit < c->n)
            send_outcome(c, &mine, c->me + bit);
    }
    return mine;
}

/* Check the list; *me: index of this rank. */
static rank_status_t check_list(const struct rank_team *parent, int64_t n, const int *ranks, int *me)
{
    const char *call = "rank_team_create";
    unsigned char *seen;
    rank_status_t st = RANK_OK;

    if (n < 1 || n > parent->size)
        return rk_arg_error(RANK_ERR_COUNT, call, "n %lld is not 1 to the team's size %d", (long long)n, parent->size);
    if (!ranks)
        return rk_arg_null(call, "ranks");
    seen = calloc((size_t)parent->size, 1);
    if (!seen)
        return RANK_ERR_NO_MEMORY;
    *me = -1;
    for (int i = 0; i < n && !st; i++) {
        if ((unsigned)ranks[i] >= (unsigned)parent->size)
            st = rk_arg_error(RANK_ERR_RANK, call, "rank %d is out of range (team size %d)", ranks[i], parent->size);
        else if (seen[ranks[i]]++)
            st = rk_arg_error(RANK_ERR_RANK, call, "rank %d is listed twice", ranks[i]);
        else if (ranks[i] == parent->rank)
            *me = i;
    }
    free(seen);
    return st || *me >= 0 ? st : rk_arg_error(RANK_ERR_ARG, call, "the list lacks this rank, %d", parent->rank);
}

rank_status_t rank_team_create(rank_team_t parent, int64_t n, const int *ranks, int64_t tag, rank_team_t *out)
{
    RK_ENTER_TEAM(parent);
    rank_status_t st = rk_team_check(__func__, parent);
    struct outcome v = {.status = RANK_OK};
    struct rank_team *team = NULL;
    int *world_ranks;
    struct circle c;
    int me;

    if (st || (st = check_list(parent, n, ranks, &me)))
        return st;
    if (tag < 0 || tag == INT64_MAX) /* as RK_TAG_ANY */
        return rk_arg_error(RANK_ERR_TAG, __func__, "tag %lld is not 0 to INT64_MAX - 1", (long long)tag);
    if (!out)
        return rk_arg_null(__func__, "out");
    if (!rk_may_wait(parent->ctx))
        return rk_arg_in_callback(__func__);
    world_ranks = malloc((size_t)n * sizeof(int));
    for (int i = 0; world_ranks && i < n; i++)
        world_ranks[i] = rk_team_world_rank(parent, ranks[i]);
    c = (struct circle){.parent = parent, .ranks = ranks, .n = (int)n, .me = me, .tag = (uint64_t)tag | RK_TAG_CREATE};
    c.list = v.list = rk_fnv64(RK_FNV64_START, ranks, (size_t)n * sizeof(int));
    if (!world_ranks)
        v.status = RANK_ERR_NO_MEMORY;
    else if (circle_is_broken(&c))
        v.status = RANK_ERR_PEER_DEAD;
    else if (me == 0) /* count before the first wait: another thread may create a team meanwhile */
        v.id = parent->mixed ? rk_team_random_id()
                             : (uint64_t)(uint32_t)world_ranks[0] << 32 | ++parent->ctx->world->counter;
    v = circle_agree(&c, v);
    if (v.status) {
        free(world_ranks);
        return rk_call_returns(__func__, (rank_status_t)v.status);
    }
    st = rk_team_open(parent->ctx, v.id, (int)n, world_ranks, &team);
    if (!st)
        *out = team;
    return rk_call_end(__func__, st);
}

/* ------------------------------------------------------------------------ queries */

/* The number of a process as the user sees it. */
static int public_rank(const struct rank_team *team, int r)
{
    int number = rk_team_world_rank(team, r);

    return number < team->ctx->boot->size ? number : RANK_UNDEFINED;
}

static rank_status_t check_member(const char *call, const struct rank_team *team, int r)
{
    rank_status_t st = rk_team_check(call, team);

    if (st || (unsigned)r < (unsigned)team->size)
        return st;
    return rk_arg_error(RANK_ERR_RANK, call, "rank %d is out of range (team size %d)", r, team->size);
}

int rank_team_world_rank(rank_team_t team, int rank)
{
    rank_status_t st = check_member(__func__, team, rank);

    return st ? (int)st : public_rank(team, rank);
}

rank_status_t rank_team_members(rank_team_t team, int *ranks, int64_t cap)
{
    rank_status_t st = rk_team_check(__func__, team);

    if (st)
        return st;
    if (!ranks)
        return rk_arg_null(__func__, "ranks");
    if (cap < team->size)
        return rk_arg_error(RANK_ERR_COUNT, __func__, "cap %lld is less than the team size %d", (long long)cap, team->size);
    for (int r = 0; r < team->size; r++)
        ranks[r] = public_rank(team, r);
    return RANK_OK;
}

static int by_process(const void *a, const void *b)
{
    return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* The members' numbers, ascending. NULL: out of memory. */
static int *sorted_members(const struct rank_team *team)
{
    int *numbers = malloc((size_t)team->size * sizeof(int));

    for (int r = 0; numbers && r < team->size; r++)
        numbers[r] = rk_team_world_rank(team, r);
    if (numbers)
        qsort(numbers, (size_t)team->size, sizeof(int), by_process);
    return numbers;
}

/* Teams of one size. */
static rank_status_t compare_members(const struct rank_team *a, const struct rank_team *b, int *result)
{
    size_t bytes = (size_t)a->size * sizeof(int);
    int *x, *y, r = 0;

    while (r < a->size && rk_team_world_rank(a, r) == rk_team_world_rank(b, r))
        r++;
    if (r == a->size) {
        *result = RANK_TEAM_CONGRUENT;
        return RANK_OK;
    }
    x = sorted_members(a);
    y = sorted_members(b);
    if (x && y)
        *result = memcmp(x, y, bytes) == 0 ? RANK_TEAM_SIMILAR : RANK_TEAM_UNEQUAL;
    free(x);
    free(y);
    return x && y ? RANK_OK : RANK_ERR_NO_MEMORY;
}

rank_status_t rank_team_compare(rank_team_t a, rank_team_t b, int *result)
{
    rank_status_t st = rk_team_check(__func__, a);

    if (st || (st = rk_team_check(__func__, b)))
        return st;
    if (!result)
        return rk_arg_null(__func__, "result");
    if (a != b && a->size == b->size)
        return compare_members(a, b, result);
    *result = a == b ? RANK_TEAM_IDENT : RANK_TEAM_UNEQUAL;
    return RANK_OK;
}

int rank_node_of(int peer, rank_team_t team)
{
    RK_ENTER_TEAM(team);
    rank_status_t st = check_member(__func__, team, peer);
    int rank = st ? (int)st : public_rank(team, peer);

    return rank < 0 ? rank : rk_boot_node_of(team->ctx->boot, rank);
}

RK_PUBLIC(rank_team_create); RK_PUBLIC(rank_team_world_rank); RK_PUBLIC(rank_team_members);
RK_PUBLIC(rank_team_compare); RK_PUBLIC(rank_node_of);
