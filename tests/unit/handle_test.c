/* SPDX-License-Identifier: BSD-3-Clause */
/* handle_test.c: put, find and drop ids at random, against a model. */
#include "tests/unit/unit.h"

#include "lib/base/handle.h"

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

static void run_model(bool random)
{
    struct model *m = calloc(1, sizeof(*m));
    uint32_t n;

    srand(18);
    rk_handles_open(&m->table, random);
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

static void counted(void **state)
{
    (void)state;
    run_model(false);
}

static void random_generations(void **state)
{
    (void)state;
    run_model(true);
}

/* One index, used again and again: each id differs from all before it, and all of these are recognized. */
static void reuse(void **state)
{
    struct rk_handles table;
    struct rk_id id, first;
    int object, guessed = 0;

    (void)state;
    for (int random = 0; random < 2; random++) {
        rk_handles_open(&table, random);
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
        for (uint32_t i = 0; i < 1000; i++) /* guesses: 1e5 of 2^32 generations were given */
            guessed += rk_handle_was_dropped(&table, (struct rk_id){first.index, table.count + 1 + i * 4200000});
        assert_true(guessed <= 10);
        assert_true(rk_handle_put(&table, &object, &id));
        assert_false(rk_handle_was_dropped(&table, id));
        rk_handles_close(&table);
    }
}

/* The count wraps: 0 is left out, so that all zeros is no id. */
static void wrap(void **state)
{
    struct rk_handles table;
    struct rk_id id;
    int object;

    (void)state;
    rk_handles_open(&table, false);
    table.count = UINT32_MAX - 1;
    assert_true(rk_handle_put(&table, &object, &id));
    assert_int_equal(id.gen, UINT32_MAX);
    assert_true(rk_handle_put(&table, &object, &id));
    assert_int_equal(id.gen, 1);
    rk_handles_close(&table);
}

/* An id of another table of this process, is invalid. */
static void two_tables(void **state)
{
    struct rk_handles a, b;
    struct rk_id ida, idb;
    int object, equal = 0;

    (void)state;
    rk_handles_open(&a, true);
    rk_handles_open(&b, true);
    for (int i = 0; i < 64; i++) {
        assert_true(rk_handle_put(&a, &object, &ida));
        assert_true(rk_handle_put(&b, &object, &idb));
        equal += ida.gen == idb.gen;
    }
    assert_true(equal <= 1); /* by chance, once in 2^26 runs */
    rk_handles_close(&a);
    rk_handles_close(&b);
}

static void invalid(void **state)
{
    static const struct rk_id bad[] = {{0, 0}, {0, 7}, {UINT32_MAX, 0}, {UINT32_MAX, UINT32_MAX}, {16, 1}, {15, 0}};
    struct rk_handles table;
    struct rk_id id;
    int object;

    (void)state;
    rk_handles_open(&table, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counted), cmocka_unit_test(random_generations), cmocka_unit_test(reuse), cmocka_unit_test(wrap),
        cmocka_unit_test(two_tables), cmocka_unit_test(invalid), cmocka_unit_test(pack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
