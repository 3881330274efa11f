/* SPDX-License-Identifier: BSD-3-Clause */
/* job_state_test.c: check the table of a job's states and the predicates on them. */
#include "launcher/frontend/job_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define EACH(state) for (enum xr_job_state state = 0; state < XR_JOB_STATES; state++)

static void each_state_has_a_name(void **arg)
{
    (void)arg;
    EACH(s)
    {
        assert_non_null(xr_job_state_name(s));
        EACH(other)
        assert_true(s == other || xr_job_state_name(s) != xr_job_state_name(other));
    }
}

/* The order of the states is the order of a job's life: no transition leads back or stays. */
static void no_transition_leads_back(void **arg)
{
    (void)arg;
    EACH(from)
    {
        EACH(to)
        assert_true(to > from || !xr_job_state_follows(from, to));
    }
}

static void each_state_can_be_done(void **arg)
{
    (void)arg;
    EACH(s)
    {
        if (xr_job_is_done(s))
            continue;
        assert_true(xr_job_is_done(xr_job_state_when_done(s)));
        assert_true(xr_job_state_follows(s, xr_job_state_when_done(s)));
    }
}

static void each_state_can_be_forced(void **arg)
{
    (void)arg;
    EACH(s)
    {
        enum xr_job_state to = xr_job_state_when_forced(s);
        assert_true(xr_job_is_forced(to));
        assert_int_equal(xr_job_is_done(to), xr_job_is_done(s));
        assert_int_equal(xr_job_state_follows(s, to), !xr_job_is_forced(s));
    }
}

/* What was requested or reached stays so. */
static void no_transition_takes_back(void **arg)
{
    (void)arg;
    EACH(from)
    {
        EACH(to)
        {
            if (!xr_job_state_follows(from, to))
                continue;
            assert_true(!xr_job_is_done(from) || xr_job_is_done(to));
            assert_true(!xr_job_is_ending(from) || xr_job_is_ending(to));
            assert_true(!xr_job_is_forced(from) || xr_job_is_forced(to));
            assert_true(xr_job_is_active(from) || !xr_job_is_active(to));
        }
    }
}

static void states_differ(void **arg)
{
    (void)arg;
    EACH(s)
    {
        assert_true(!xr_job_is_active(s) || (!xr_job_is_done(s) && !xr_job_is_ending(s)));
        assert_true(!xr_job_is_forced(s) || xr_job_is_ending(s));
    }
    assert_true(xr_job_is_active(XR_JOB_RUNNING));
    assert_false(xr_job_is_active(XR_JOB_EXPIRED));
    assert_false(xr_job_is_ending(XR_JOB_EXPIRED));
    assert_false(xr_job_is_ending(XR_JOB_DONE));
    assert_true(xr_job_is_ending(XR_JOB_DONE_ENDED));
}

static void usual_sequences_are_legal(void **arg)
{
    static const enum xr_job_state sequences[][5] = {
        {XR_JOB_ALLOCATING, XR_JOB_LAUNCHING, XR_JOB_RUNNING, XR_JOB_DONE, XR_JOB_DONE_FORCED},
        {XR_JOB_ALLOCATING, XR_JOB_LAUNCHING, XR_JOB_RUNNING, XR_JOB_ENDING, XR_JOB_DONE_ENDED},
        {XR_JOB_LAUNCHING, XR_JOB_RUNNING, XR_JOB_EXPIRED, XR_JOB_FORCED, XR_JOB_DONE_FORCED},
        {XR_JOB_ALLOCATING, XR_JOB_LAUNCHING, XR_JOB_ENDING, XR_JOB_FORCED, XR_JOB_DONE_FORCED},
    };

    (void)arg;
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
        for (size_t k = 0; k + 1 < 5; k++)
            assert_true(xr_job_state_follows(sequences[i][k], sequences[i][k + 1]));
    }
    assert_false(xr_job_state_follows(XR_JOB_ALLOCATING, XR_JOB_RUNNING));
    assert_false(xr_job_state_follows(XR_JOB_DONE, XR_JOB_ENDING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_has_a_name),    cmocka_unit_test(no_transition_leads_back),
        cmocka_unit_test(each_state_can_be_done),   cmocka_unit_test(each_state_can_be_forced),
        cmocka_unit_test(no_transition_takes_back), cmocka_unit_test(states_differ),
        cmocka_unit_test(usual_sequences_are_legal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
