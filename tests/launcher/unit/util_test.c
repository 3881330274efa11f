/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * util_test.c: test string vectors and the readers of /proc.
 */
#include "launcher/util/procfs.h"
#include "launcher/util/strv.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static void string_vectors(void **state)
{
    char **v = NULL;

    (void)state;
    assert_int_equal(xr_strv_count(NULL), 0);
    for (int i = 0; i < 100; i++) {
        char text[8];
        snprintf(text, sizeof(text), "%d", i);
        assert_true(xr_strv_add(&v, text));
        assert_int_equal(xr_strv_count(v), i + 1);
    }
    assert_string_equal(v[0], "0");
    assert_string_equal(v[99], "99");
    xr_strv_free(v);
    xr_strv_free(NULL);
}

static void until_state(pid_t pid, char state)
{
    const struct timespec tick = {0, 1000000};
    struct xr_procfs_stat stat;

    while (xr_procfs_stat(pid, &stat) && stat.state != state)
        nanosleep(&tick, NULL);
    assert_int_equal(stat.state, state);
}

/* A child whose name looks like the fields behind it, in each state. */
static void process_states(void **state)
{
    struct xr_procfs_stat stat;
    pid_t pid = fork(), children[4];
    siginfo_t info;

    (void)state;
    if (pid == 0) {
        prctl(PR_SET_NAME, ") R 1 1 (");
        for (;;)
            pause();
    }
    until_state(pid, 'S');
    assert_true(xr_procfs_stat(pid, &stat));
    assert_int_equal(stat.parent, getpid());
    assert_false(stat.ended);
    assert_false(stat.ending);
    if (xr_procfs_children(getpid(), children, 4)) {
        assert_int_equal(xr_procfs_children(getpid(), children, 4), 1);
        assert_int_equal(children[0], pid);
        assert_int_equal(xr_procfs_children(getpid(), children, 0), 0);
    }
    assert_int_equal(kill(pid, SIGSTOP), 0);
    until_state(pid, 'T');
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_true(xr_procfs_stat(pid, &stat));
    assert_true(stat.ended);
    assert_true(stat.ending);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_false(xr_procfs_stat(pid, &stat));
    assert_int_equal(xr_procfs_children(pid, children, 4), 0);
}

static void variables(void **state)
{
    char text[64], cut[4];

    (void)state;
    assert_false(xr_procfs_variable(getpid(), "RK_NO_SUCH_VARIABLE", text, sizeof(text)));
    if (xr_procfs_read(getpid(), "environ", text, sizeof(text)) && strchr(text, '=')) {
        *strchr(text, '=') = '\0';
        assert_true(xr_procfs_variable(getpid(), text, cut, sizeof(cut)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(string_vectors),
        cmocka_unit_test(process_states),
        cmocka_unit_test(variables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
