/* SPDX-License-Identifier: BSD-3-Clause */
/* team_table_test.c: compare the table of teams with a plain array. */
#include "tests/unit/unit.h"

#include "lib/p2p/team_table.h"

enum { TEAMS = 1000, STEPS = 200000 };

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* As lib/world numbers them: world rank and counter; or random; or all with one home. */
static uint64_t id_of(int form, int i)
{
    switch (form) {
    case 0:
        return (uint64_t)(i % 7) << 32 | (uint64_t)(i / 7);
    case 1:
        return (uint64_t)i * 0xd1342543de82ef95ull >> 1;
    default:
        return (uint64_t)i << 57 | (uint64_t)i >> 7; /* few homes */
    }
}

static void against_model(void **state)
{
    static struct rank_team team[TEAMS];
    static bool here[TEAMS];
    uint64_t seed = 1;

    (void)state;
    for (int form = 0; form < 3; form++) {
        struct rk_team_table t = {.slots = NULL};
        uint32_t n = 0;

        for (int i = 0; i < TEAMS; i++)
            team[i].id = id_of(form, i);
        for (int step = 0; step < STEPS; step++) {
            int i = (int)(draw(&seed) % TEAMS);
            bool wanted = draw(&seed) % 1000 < (uint64_t)(step / (STEPS / 4) % 2 ? 200 : 800);

            assert_ptr_equal(rk_team_table_find(&t, team[i].id), here[i] ? &team[i] : NULL);
            if (wanted && !here[i])
                assert_int_equal(rk_team_table_add(&t, &team[i]), RANK_OK);
            else if (!wanted)
                rk_team_table_remove(&t, &team[i]);
            n += (uint32_t)wanted - (uint32_t)here[i];
            here[i] = wanted;
            assert_int_equal(t.n, n);
        }
        for (int i = 0; i < TEAMS; i++) {
            assert_ptr_equal(rk_team_table_find(&t, team[i].id), here[i] ? &team[i] : NULL);
            rk_team_table_remove(&t, &team[i]);
            here[i] = false;
        }
        assert_null(t.slots); /* an empty table has no memory */
    }
}

/* With a thousand teams alive a search reads little more than one slot. */
static void searches_are_short(void **state)
{
    static struct rank_team team[TEAMS];
    struct rk_team_table t = {.slots = NULL};
    unsigned reads = 0;

    (void)state;
    for (int i = 0; i < TEAMS; i++) {
        team[i].id = id_of(0, i);
        assert_int_equal(rk_team_table_add(&t, &team[i]), RANK_OK);
    }
    for (uint32_t i = 0, run = 0; i <= t.mask; i++) {
        run = t.slots[i] ? run + 1 : 0;
        reads += run; /* at most, as if the run were of one home */
    }
    assert_true(reads < 2 * TEAMS);
    for (int i = 0; i < TEAMS; i++)
        rk_team_table_remove(&t, &team[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_model),
        cmocka_unit_test(searches_are_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
