/* SPDX-License-Identifier: BSD-3-Clause */
/* procs_test.c: number processes, describe them to a spawned job, lose other jobs. */
#include "tests/unit/unit.h"

#include "lib/boot/parent.h"
#include "lib/boot/nspaces.h"
#include "lib/core/procs.h"

/* ------------------------------------------------------------------------ parent.h */

static struct rk_boot_parent example(void)
{
    struct rk_boot_parent p = {.job = 0xfedcba9876543210u, .pair = 1, .both = 0, .root_job = 77,
                               .root_rank = 3, .root_size = 4, .card_len = 5, .card = "ab\0\xff"};

    strcpy(p.root_space, "prterun-host-1@2");
    strcpy(p.server, "server.x");
    return p;
}

static void text_and_back(void **state)
{
    struct rk_boot_parent p = example(), q;
    char *text = rk_parent_text(&p);

    (void)state;
    assert_non_null(text);
    assert_true(rk_parent_parse(text, &q));
    assert_memory_equal(&p, &q, sizeof(p));
    free(text);

    memset(p.server, 0, sizeof(p.server)); /* not reported */
    p.card_len = sizeof(p.card);
    memset(p.card, 0xa5, sizeof(p.card));
    memset(p.root_space, 'n', sizeof(p.root_space) - 1);
    p.root_rank = RK_JOB_SIZE_MAX - 1;
    p.root_size = RK_JOB_SIZE_MAX;
    text = rk_parent_text(&p);
    assert_non_null(text);
    assert_true(rk_parent_parse(text, &q));
    assert_memory_equal(&p, &q, sizeof(p));
    free(text);

    p.root_space[2] = ',';
    assert_null(rk_parent_text(&p));
}

static void garbage(void **state)
{
    static const char *const bad[] = {
        "", ",", "1", "1,,,,,,,,,", "2,1,1,1,1,0,1,s,n,00", "1,1,1,1,1,1,1,s,n,00",
        "1,1,1,1,1,0,1,s,,00", "1,1,1,1,1,0,1,s,n,", "1,1,1,1,1,0,1,s,n,0", "1,1,1,1,1,0,1,s,n,0g",
        "1,1,1,1,1,0,1,s,n,00,", "1,11111111111111111,1,1,1,0,1,s,n,00", "1,1,1,1,1,-1,1,s,n,00",
        "1,1,1,1,1,0,fffffff,s,n,00", "1, 1,1,1,1,0,1,s,n,00", "1,1,1,1,1,0,1,s,n,AB"};
    struct rk_boot_parent *p = calloc(1, sizeof(*p));
    char *text, *longer = calloc(1, 3 * RK_CARD_MAX);

    (void)state;
    assert_true(rk_parent_parse("1,1,1,1,1,0,1,s,n,00", p));
    for (size_t i = 0; i < RK_ARRAY_LEN(bad); i++) {
        if (rk_parent_parse(bad[i], p))
            fail_msg("taken: %s", bad[i]);
    }
    *p = example();
    text = rk_parent_text(p);
    for (size_t cut = strlen(text) - 2 * p->card_len + 1; cut-- > 0;) { /* every beginning */
        text[cut] = '\0';
        assert_false(rk_parent_parse(text, p));
    }
    strcpy(longer, "1,1,1,1,1,0,1,s,n,");
    memset(longer + strlen(longer), '0', 2 * RK_CARD_MAX + 2);
    assert_false(rk_parent_parse(longer, p));
    memset(longer + strlen("1,1,1,1,1,0,1,"), 'n', RK_NSPACE_MAX); /* a name too long */
    assert_false(rk_parent_parse(longer, p));
    free(text);
    free(longer);
    free(p);
}

/* ------------------------------------------------------------------------ nspaces.h */

struct ended {
    int n, number[600];
};

static void record_end(int number, void *arg)
{
    struct ended *t = arg;

    assert_in_range(t->n, 0, 599);
    t->number[t->n++] = number;
}

static void spaces(void **state)
{
    struct rk_nspaces *s = rk_nspaces_new();
    struct ended t = {0};

    (void)state;
    assert_non_null(s);
    assert_int_equal(rk_nspaces_register(s, "a", 10, 3, record_end, &t), RANK_OK);
    rk_nspaces_ended(s, "a", 2, record_end, &t);
    rk_nspaces_ended(s, "a", 3, record_end, &t); /* there is none */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.number[0], 12);
    rk_nspaces_ended(s, "a", RK_NSPACE_ALL, record_end, &t);
    assert_int_equal(t.n, 4);
    assert_int_equal(t.number[3], 12);

    t.n = 0; /* before it has a name */
    rk_nspaces_ended(s, "b", 1, record_end, &t);
    rk_nspaces_ended(s, "c", 0, record_end, &t);
    rk_nspaces_ended(s, "b", 0, record_end, &t);
    assert_int_equal(t.n, 0);
    assert_int_equal(rk_nspaces_register(s, "b", 20, 2, record_end, &t), RANK_OK);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.number[0], 21);
    assert_int_equal(t.number[1], 20);
    assert_int_equal(rk_nspaces_register(s, "b", 20, 2, record_end, &t), RANK_OK);
    assert_int_equal(t.n, 2);

    t.n = 0; /* the oldest of too many are forgotten */
    for (int i = 0; i < 500; i++)
        rk_nspaces_ended(s, "d", i, record_end, &t);
    assert_int_equal(rk_nspaces_register(s, "d", 100, 500, record_end, &t), RANK_OK);
    assert_in_range(t.n, 100, 499);
    assert_int_equal(t.number[t.n - 1], 599);
    rk_nspaces_ended(s, "e", 1, record_end, &t); /* stays till the end */
    rk_nspaces_free(s);
    rk_nspaces_free(NULL);
}

/* ------------------------------------------------------------------------ core/procs.h */

static void job_removed(struct rk_boot *boot, int first)
{
    assert_true(first >= boot->size);
}

static const struct rk_boot_provider provider = {.name = "unit", .remove_job = job_removed};

static void processes(void **state)
{
    static struct rk_boot boot = {.ops = &provider, .rank = 1, .size = 5, .alone = true, .job = "w"};
    struct rk_ctx ctx = {.boot = &boot};
    struct rk_engine *e;
    char card[8];
    size_t len = sizeof(card);
    struct rk_peer peer = {.ctx = &ctx};
    int first;

    (void)state;
    assert_int_equal(rk_engine_open(&ctx), RANK_OK);
    e = ctx.engine;
    assert_int_equal(rk_procs_add_job(&ctx, e->job, 5, &first), RANK_OK); /* ours */
    assert_int_equal(first, 0);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 100, &first), RANK_OK);
    assert_int_equal(first, 5);
    assert_int_equal(rk_procs_add_job(&ctx, 8, 1, &first), RANK_OK);
    assert_int_equal(first, 105);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 100, &first), RANK_OK); /* again */
    assert_int_equal(first, 5);
    assert_int_equal(e->npeers, 106);
    assert_int_equal(rk_procs_add_job(&ctx, 7, 101, &first), RANK_ERR_BOOT);
    assert_int_equal(rk_procs_add_job(&ctx, 9, 0, &first), RANK_ERR_BOOT);
    assert_int_equal(rk_procs_add_job(&ctx, 9, RK_JOB_SIZE_MAX + 1, &first), RANK_ERR_BOOT);

    for (int n = 0; n < 106; n++) { /* there and back */
        struct rk_procid id = rk_procs_id(&ctx, n);
        assert_int_equal(rk_procs_number(&ctx, id), n);
        assert_int_equal(id.rank, n < 5 ? n : n < 105 ? n - 5 : 0);
        assert_int_equal(id.job, n < 5 ? e->job : n < 105 ? 7 : 8);
    }
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){7, 100}), -1);
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){e->job, 5}), -1);
    assert_int_equal(rk_procs_number(&ctx, (struct rk_procid){12, 0}), -1);
    assert_null(rk_engine_find_peer(&ctx, (struct rk_procid){12, 0}));

    assert_int_equal(rk_procs_set_card(&ctx, 6, "card", 5), RANK_OK);
    peer.number = 6;
    assert_int_equal(rk_peer_card(&peer, "", card, &len), RANK_OK);
    assert_int_equal(len, 5);
    assert_string_equal(card, "card");
    len = 4;
    assert_int_equal(rk_peer_card(&peer, "", card, &len), RANK_ERR_UNREACHABLE);
    peer.number = 7;
    assert_int_equal(rk_peer_card(&peer, "", card, &len), RANK_ERR_UNREACHABLE);

    /* A death is not lost when the table grows, nor left when numbers go to others. */
    rk_procs_remove_job(&ctx, 7); /* not the last */
    assert_int_equal(e->npeers, 106);
    e->boot_dead[0] = 1u << 3;
    e->boot_dead[105 / 64] |= 1ull << (105 % 64);
    rk_procs_remove_job(&ctx, 8);
    assert_int_equal(e->npeers, 105);
    assert_int_equal(rk_procs_add_job(&ctx, 10, 1000, &first), RANK_OK);
    assert_int_equal(first, 105);
    assert_int_equal(e->boot_dead[0], 1u << 3);
    assert_int_equal(e->boot_dead[105 / 64], 0);
    rk_engine_close(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_back),
        cmocka_unit_test(garbage),
        cmocka_unit_test(spaces),
        cmocka_unit_test(processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
