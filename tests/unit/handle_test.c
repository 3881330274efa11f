/* SPDX-License-Identifier: BSD-3-Clause */
/* handle_test.c: put, find and drop ids at random; guess secret ones. */
#include "tests/unit/unit.h"

#include "lib/base/secret_id.h"

#include <string.h>

enum { ALIVE_MAX = 200, STALE_MAX = 4096, STEPS = 20000 };

struct model {
    struct rk_handles table;
    struct rk_id alive[ALIVE_MAX], stale[STALE_MAX];
    int object[ALIVE_MAX];
    bool used[ALIVE_MAX];
    uint32_t nstale;
};

static void model_drop(struct model *m, int i)
{
    rk_handle_drop(&m->table, m->alive[i]);
    rk_handle_drop(&m->table, m->alive[i]); /* no-op */
    m->stale[m->nstale++ % STALE_MAX] = m->alive[i];
    m->used[i] = false;
}

static void model_put(struct model *m, int i)
{
    assert_true(rk_handle_put(&m->table, &m->object[i], &m->alive[i]));
    assert_int_not_equal(m->alive[i].gen, 0);
    assert_true(m->alive[i].index < 256); /* the power of two above ALIVE_MAX */
    m->used[i] = true;
}

static void model_check(const struct model *m)
{
    uint32_t i, found = 0, used = 0;
    int *object;

    for (int k = 0; k < ALIVE_MAX; k++) {
        used += m->used[k];
        if (m->used[k])
            assert_ptr_equal(rk_handle_get(&m->table, m->alive[k]), &m->object[k]);
    }
    for (uint32_t k = 0; k < m->nstale && k < STALE_MAX; k++)
        assert_null(rk_handle_get(&m->table, m->stale[k]));
    rk_handles_for_each(i, object, &m->table)
    {
        assert_true(m->used[object - m->object]);
        found++;
    }
    assert_int_equal(found, used);
}

static void random_program(void **state)
{
    struct model *m = calloc(1, sizeof(*m));
    uint32_t n;

    (void)state;
    srand(18);
    rk_handles_open(&m->table);
    for (int step = 0; step < STEPS; step++) {
        int i = rand() % ALIVE_MAX;
        if (m->used[i])
            model_drop(m, i);
        else
            model_put(m, i);
        if (step % 100 == 0)
            model_check(m);
    }
    n = m->table.n;
    assert_true(n <= 2 * ALIVE_MAX);
    for (int step = 0; step < STEPS; step++) { /* no growth without more objects */
        int i = rand() % ALIVE_MAX;
        if (m->used[i])
            model_drop(m, i);
        model_put(m, i);
    }
    model_check(m);
    assert_int_equal(m->table.n, n > 256 ? n : 256);
    rk_handles_close(&m->table);
    for (int i = 0; i < ALIVE_MAX; i++)
        assert_null(rk_handle_get(&m->table, m->alive[i]));
    free(m);
}

/* One index, used again and again: each id differs from all before it, and all of these are recognized. */
static void reuse(void **state)
{
    struct rk_handles table;
    struct rk_id id, first;
    int object;

    (void)state;
    rk_handles_open(&table);
    assert_true(rk_handle_put(&table, &object, &first));
    rk_handle_drop(&table, first);
    for (int i = 0; i < 100000; i++) {
        assert_true(rk_handle_put(&table, &object, &id));
        assert_int_equal(id.index, first.index);
        assert_int_not_equal(id.gen, first.gen);
        assert_ptr_equal(rk_handle_get(&table, id), &object);
        rk_handle_drop(&table, id);
        assert_null(rk_handle_get(&table, id));
        assert_true(rk_handle_was_dropped(&table, id));
        assert_true(rk_handle_was_dropped(&table, first));
    }
    assert_false(rk_handle_was_dropped(&table, (struct rk_id){first.index, table.count + 1}));
    assert_true(rk_handle_put(&table, &object, &id));
    assert_false(rk_handle_was_dropped(&table, id));
    rk_handles_close(&table);
}

/* The count wraps: 0 is left out, so that all zeros is no id. */
static void wrap(void **state)
{
    struct rk_handles table;
    struct rk_id id;
    int object;

    (void)state;
    rk_handles_open(&table);
    table.count = UINT32_MAX - 1;
    assert_true(rk_handle_put(&table, &object, &id));
    assert_int_equal(id.gen, UINT32_MAX);
    assert_true(rk_handle_put(&table, &object, &id));
    assert_int_equal(id.gen, 1);
    rk_handles_close(&table);
}

static void invalid(void **state)
{
    static const struct rk_id bad[] = {{0, 0}, {0, 7}, {UINT32_MAX, 0}, {UINT32_MAX, UINT32_MAX}, {16, 1}, {15, 0}};
    struct rk_handles table;
    struct rk_id id;
    int object;

    (void)state;
    rk_handles_open(&table);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < RK_ARRAY_LEN(bad); i++) {
            assert_null(rk_handle_get(&table, bad[i]));
            assert_false(rk_handle_was_dropped(&table, bad[i]));
            rk_handle_drop(&table, bad[i]);
        }
        assert_true(rk_handle_put(&table, &object, &id));
    }
    rk_handles_close(&table);
}

static void pack(void **state)
{
    struct rk_id id = rk_id_unpack(rk_id_pack((struct rk_id){0x12345678, 0x9abcdef0}));

    (void)state;
    assert_int_equal(id.index, 0x12345678);
    assert_int_equal(id.gen, 0x9abcdef0);
    assert_int_equal(rk_id_pack((struct rk_id){0, 0}), 0);
}

/* ---------------------------------------------------------------------- secret ids */

struct secret {
    struct rk_hash_node node;
    struct rk_id id;
};

enum { SECRETS = 2000, DROPPED = 50000, GUESSES = 1000000 };

/* Any number of ids at once and in turn: each one is found, and recognized once it is dropped. */
static void secret_ids(void **state)
{
    static struct secret live[SECRETS];
    static struct rk_id dropped[DROPPED];
    struct rk_secret_ids table;

    (void)state;
    srand(18);
    assert_true(rk_secret_ids_open(&table));
    for (int i = 0; i < SECRETS; i++)
        assert_true(rk_secret_id_put(&table, &live[i].node, &live[i].id));
    for (int n = 0; n < DROPPED; n++) {
        struct secret *it = &live[rand() % SECRETS];

        dropped[n] = it->id;
        rk_secret_id_drop(&table, &it->node);
        rk_secret_id_drop(&table, &it->node); /* no-op */
        assert_true(rk_secret_id_put(&table, &it->node, &it->id));
    }
    for (int i = 0; i < SECRETS; i++) {
        assert_ptr_equal(rk_secret_id_find(&table, live[i].id), &live[i].node);
        assert_false(rk_secret_id_was_dropped(&table, live[i].id));
        assert_true(live[i].id.index != UINT32_MAX && rk_id_pack(live[i].id) != 0);
    }
    for (int n = 0; n < DROPPED; n++) {
        assert_null(rk_secret_id_find(&table, dropped[n]));
        assert_true(rk_secret_id_was_dropped(&table, dropped[n]));
    }
    rk_secret_ids_close(&table);
    assert_null(rk_secret_id_find(&table, live[0].id));
}

/* No guess hits: neither one at random, nor one near an id that the guesser has, in either half. */
static void guesses(void **state)
{
    struct secret given, others[64];
    struct rk_secret_ids table;
    uint64_t word = 0x243f6a8885a308d3u;

    (void)state;
    assert_true(rk_secret_ids_open(&table));
    assert_true(rk_secret_id_put(&table, &given.node, &given.id));
    for (int i = 0; i < 64; i++)
        assert_true(rk_secret_id_put(&table, &others[i].node, &others[i].id));
    for (uint32_t i = 1; i < GUESSES; i++) {
        struct rk_id near[] = {{given.id.index + i, given.id.gen}, {given.id.index - i, given.id.gen}, {given.id.index, given.id.gen + i},
                               {given.id.index, given.id.gen - i}, {i, 1}, {i % 65, given.id.gen}};

        word = word * 6364136223846793005u + 1442695040888963407u;
        assert_null(rk_secret_id_find(&table, rk_id_unpack(word)));
        for (size_t k = 0; k < RK_ARRAY_LEN(near); k++)
            assert_null(rk_secret_id_find(&table, near[k]));
        assert_false(i % 64 == 0 && rk_secret_id_was_dropped(&table, rk_id_unpack(word)));
    }
    rk_secret_ids_close(&table);
}

/* Known answers of XTEA: the count is the plaintext, the id the ciphertext. */
static void known_answers(void **state)
{
    static const struct {
        uint32_t key[4];
        uint64_t plain, cipher;
    } known[] = {
        {{0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f}, 0x4142434445464748u, 0x497df3d072612cb5u},
        {{0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f}, 0x4141414141414141u, 0xe78f2d13744341d8u},
        {{0, 0, 0, 0}, 0x4142434445464748u, 0xa0390589f8b8efa5u},
    };
    struct rk_secret_ids table;
    struct secret it;

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(known); i++) {
        assert_true(rk_secret_ids_open(&table));
        memcpy(table.key, known[i].key, sizeof(table.key));
        table.count = known[i].plain - 1;
        assert_true(rk_secret_id_put(&table, &it.node, &it.id));
        assert_true(rk_id_pack(it.id) == known[i].cipher);
        rk_secret_id_drop(&table, &it.node);
        assert_true(rk_secret_id_was_dropped(&table, it.id));
        rk_secret_ids_close(&table);
    }
}

/* Two tables have different keys. */
static void two_tables(void **state)
{
    struct rk_secret_ids a, b;
    struct secret ina, inb;

    (void)state;
    assert_true(rk_secret_ids_open(&a));
    assert_true(rk_secret_ids_open(&b));
    assert_true(rk_secret_id_put(&a, &ina.node, &ina.id));
    assert_true(rk_secret_id_put(&b, &inb.node, &inb.id));
    assert_true(rk_id_pack(ina.id) != rk_id_pack(inb.id));
    rk_secret_ids_close(&a);
    rk_secret_ids_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_program), cmocka_unit_test(reuse),      cmocka_unit_test(wrap),          cmocka_unit_test(invalid),
        cmocka_unit_test(pack),           cmocka_unit_test(secret_ids), cmocka_unit_test(guesses), cmocka_unit_test(known_answers),
        cmocka_unit_test(two_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
