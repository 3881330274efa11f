/* SPDX-License-Identifier: BSD-3-Clause */
/* agent_state_test.c: compare legal transitions of an agent with its paths. */
#include "launcher/agent/agent_state.h"

#include "tests/unit/unit.h"

static const char *const legal[] = {
    "connected starting",    "connected running", "starting running", "starting killing",
    "running terminating",   "running killing",   "running done",     "terminating killing",
    "terminating done",      "killing killing",   "killing done",
};

static bool is_listed(const char *pair)
{
    for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++) {
        if (strcmp(legal[i], pair) == 0)
            return true;
    }
    return false;
}

static void test_table(void **state)
{
    char pair[64];

    (void)state;
    for (unsigned from = 0; from < XR_AGENT_STATES; from++) {
        for (unsigned to = 0; to < XR_AGENT_STATES; to++) {
            snprintf(pair, sizeof(pair), "%s %s", xr_agent_state_name(from), xr_agent_state_name(to));
            if (xr_agent_state_legal(from, to) != is_listed(pair))
                fail_msg("%s", pair);
        }
    }
    assert_false(xr_agent_state_legal(XR_AGENT_DONE, XR_AGENT_STATES));
    assert_false(xr_agent_state_legal(XR_AGENT_STATES, XR_AGENT_DONE));
}

static void test_set(void **state)
{
    enum xr_agent_state s = XR_AGENT_CONNECTED;
    struct unit_stderr e;

    (void)state;
    unit_stderr_begin(&e);
    xr_agent_state_set(&s, XR_AGENT_STARTING);
    xr_agent_state_set(&s, XR_AGENT_RUNNING);
    xr_agent_state_set(&s, XR_AGENT_DONE);
    assert_string_equal(unit_stderr_end(&e), "");
    assert_int_equal(s, XR_AGENT_DONE);
    unit_stderr_begin(&e);
    xr_agent_state_set(&s, XR_AGENT_RUNNING);
    assert_contains(unit_stderr_end(&e), "bug: an agent goes from done to running");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_set)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
