/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_cards.c: decode what launchers and ranks send about ranks.
 * The list of ranks of this host, the job info of a spawned job, and rosters of other jobs. The first byte chooses.
 */
#include "lib/boot/parent.h"
#include "lib/core/procs.h"
#include "lib/dpm/roster.h"

#include <stdlib.h>
#include <string.h>

/* What a roster makes a rank do beyond its own tables. */
static rank_status_t name_job(struct rk_boot *boot, const char *space, int first, int size)
{
    (void)boot;
    if (strlen(space) >= RK_NSPACE_MAX || first < 0 || size < 1)
        abort();
    return RANK_OK;
}

static const struct rk_boot_provider provider = {.name = "fuzz", .name_job = name_job};

static void oversubscribed(struct rk_ctx *ctx)
{
    (void)ctx;
}

#define rk_engine_set_oversubscribed oversubscribed
#include "lib/dpm/roster.c"
#undef rk_engine_set_oversubscribed

/* With the static function that reads the list of local ranks. */
#include "lib/boot/identity.c"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len);

static void local_ranks(const char *text)
{
    struct rk_boot boot = {.rank = 3, .size = 9};

    if (parse_local(&boot, text) == RANK_OK && boot.local[boot.local_index] != boot.rank)
        abort();
    if (boot.nlocal > boot.size)
        abort();
    for (int i = 0; i < boot.nlocal; i++) {
        if (boot.local[i] < 0 || boot.local[i] >= boot.size)
            abort();
    }
    free(boot.local);
}

/* What is parsed prints the same again, but for zeros before numbers. */
static void parents(const char *text)
{
    struct rk_boot_parent p, q;
    char *again;

    if (!rk_parent_parse(text, &p))
        return;
    again = rk_parent_text(&p);
    if (!again || !rk_parent_parse(again, &q) || memcmp(&p, &q, sizeof(p)) != 0)
        abort();
    free(again);
}

static void roster(const unsigned char *input, size_t len)
{
    enum { MOST = 4 };
    struct rk_boot boot = {.ops = &provider, .rank = 0, .size = 2, .host = "host"};
    struct rk_engine e = {.job = 1, .npeers = 2};
    struct rk_ctx ctx = {.boot = &boot, .engine = &e};
    struct rk_roster r;
    unsigned char card[RK_CARD_MAX];
    int numbers[MOST], n;
    int64_t stride;

    if (len < 3)
        return;
    n = 1 + input[0] % MOST;
    stride = stride_for(1) + 8 * (input[1] | input[2] << 8);
    if (rk_roster_make(&r, n, stride) != RANK_OK)
        return;
    input += 3;
    len -= 3;
    memcpy(r.entries, input, len < (size_t)(n * stride) ? len : (size_t)(n * stride));
    /* Sizes of jobs are believed, and tables made of them: small ones here, or a run is about memory. */
    for (int i = 0; i < n; i++)
        at(&r, i)->size %= 1 << 12;
    pthread_mutex_init(&e.deaths_lock, NULL);
    e.peers = calloc(2, sizeof(struct rk_peer *));
    e.boot_dead = calloc(1, sizeof(uint64_t));
    if (e.peers && e.boot_dead && rk_roster_take(&ctx, &r, 1, numbers) == RANK_OK) {
        for (int i = 0; i < n; i++) {
            struct rk_peer peer = {.ctx = &ctx, .number = numbers[i]};
            size_t room = sizeof(card);

            if (numbers[i] < 0 || numbers[i] >= e.npeers || rk_procs_number(&ctx, rk_procs_id(&ctx, numbers[i])) != numbers[i])
                abort();
            if (at(&r, i)->job != e.job && rk_peer_card(&peer, "tcp", card, &room) == RANK_OK && room > sizeof(card))
                abort();
        }
    }
    rk_procs_close(&ctx);
    rk_roster_clear(&r);
    pthread_mutex_destroy(&e.deaths_lock);
    free(e.peers);
    free(e.boot_dead);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
    char *text;

    if (len == 0)
        return 0;
    if (input[0] % 3 == 2) {
        roster(input + 1, len - 1);
        return 0;
    }
    text = malloc(len); /* of just its size, with its end */
    if (!text)
        return 0;
    memcpy(text, input + 1, len - 1);
    text[len - 1] = '\0';
    if (input[0] % 3 == 0)
        local_ranks(text);
    else
        parents(text);
    free(text);
    return 0;
}
