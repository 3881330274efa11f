/* SPDX-License-Identifier: BSD-3-Clause */
/* habits_test.c: accept options and hostfile words of other launchers. */
#include "launcher/alloc/hostlist.h"
#include "lib/base/compiler.h"
#include "tests/launcher/unit/option_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(struct xr_options *o, const char *line)
{
    char err[256] = "";

    if (option_line_parse(o, err, sizeof(err), line))
        fail_msg("'%s': %s", line, err);
}

static void numbers(void **state)
{
    static const char *const four[] = {"-n4 app",        "-n 4 app",       "-np 4 app",
                                       "--np 4 app",     "--ntasks 4 app", "--ntasks=4 app",
                                       "-n 4 -- app -n5"};
    static const char *const two[] = {"-N 2 app", "-N2 app", "-ppn 2 app", "--ppn=2 app", "--npernode 2 app",
                                      "--ntasks-per-node=2 app"};
    struct xr_options o;

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(four); i++) {
        expect(&o, four[i]);
        assert_int_equal(o.n, 4);
        assert_string_equal(o.apps[0].command[0], "app");
        xr_options_free(&o);
    }
    for (size_t i = 0; i < RK_ARRAY_LEN(two); i++) {
        expect(&o, two[i]);
        assert_int_equal(o.where.request.ppr, 2);
        assert_int_equal(o.where.request.map, XR_LEVEL_NODE);
        xr_options_free(&o);
    }
    expect(&o, "-n2 a : -n3 b");
    assert_int_equal(o.n, 5);
    xr_options_free(&o);
}

static void hosts_and_cores(void **state)
{
    static const struct {
        const char *word;
        enum xr_bind bind;
    } binds[] = {{"core", XR_BIND_CORE},     {"none", XR_BIND_NONE},    {"socket", XR_BIND_PACKAGE},
                 {"package", XR_BIND_PACKAGE}, {"numa", XR_BIND_NUMA},  {"l3cache", XR_BIND_L3},
                 {"hwthread", XR_BIND_HWTHREAD}};
    struct xr_options o;
    char line[64];

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(binds); i++) {
        snprintf(line, sizeof(line), "%s %s app", i % 2 ? "-bind-to" : "--bind-to", binds[i].word);
        expect(&o, line);
        assert_int_equal(o.where.request.bind, binds[i].bind);
        xr_options_free(&o);
    }
    expect(&o, "-host a -hosts b:2,c -machinefile f --machinefile g --oversubscribe --allow-run-as-root -l app");
    assert_string_equal(o.where.hosts, "a,b:2,c");
    assert_int_equal(o.where.nhostfiles, 2);
    assert_true(o.tag_output);
    xr_options_free(&o);
}

static void variables(void **state)
{
    struct xr_options o;

    (void)state;
    expect(&o, "-genv A -x -x D=3 a");
    assert_int_equal(o.apps[0].nset, 2);
    assert_string_equal(o.apps[0].set[0], "A=-x");
    assert_string_equal(o.apps[0].set[1], "D=3");
    xr_options_free(&o);
    expect(&o, "-env A 1 -genv B 2 a -genv C 3 : -env E 5 b : c");
    assert_int_equal(o.apps[0].nset, 2);
    assert_int_equal(o.apps[1].nset, 2);
    assert_string_equal(o.apps[1].set[0], "B=2");
    assert_string_equal(o.apps[1].set[1], "E=5");
    assert_int_equal(o.apps[2].nset, 1);
    assert_string_equal(o.apps[2].set[0], "B=2");
    xr_options_free(&o);
}

static void refused(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"--mca btl tcp app", "there is no option --mca; programs of Open MPI take -x OMPI_MCA_NAME=VALUE"},
        {"-genv A", "-genv needs a name and a value"},
        {"-env A=1 app", "-env needs a name and a value"},
        {"-genv 9 1 app", "-x is '9=1'"},
        {"a : -genv A 1 b", "-genv is for the whole job"},
        {"-n0 app", "-n is '0'"},
        {"-n2x app", "there is no option -n2x"},
        {"-ppn 0 app", "--ppn is '0'"},
        {"--bind-to board app", "--bind is 'board'"},
        {"--oversubscribe=2 app", "takes no value"},
    };

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(cases); i++) {
        struct xr_options o;
        char err[256] = "";
        assert_int_equal(option_line_parse(&o, err, sizeof(err), cases[i].line), RANK_ERR_ARG);
        if (!strstr(err, cases[i].says))
            fail_msg("'%s': '%s', not '%s'", cases[i].line, err, cases[i].says);
        xr_options_free(&o);
    }
}

static rank_status_t read_text(struct xr_hostlist *list, const char *text)
{
    char path[] = "/tmp/habits.XXXXXX", err[256];
    int fd = mkstemp(path);
    rank_status_t st;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    st = xr_hostlist_read(list, path, err, sizeof(err));
    unlink(path);
    return st;
}

static void hostfile_words(void **state)
{
    static const char *const bad[] = {"a slots = x\n", "a cores=\n", "a colour=red\n", "a slots=2 cpu=2\n", "= 2\n"};
    struct xr_hostlist list = {.n = 0};

    (void)state;
    assert_int_equal(read_text(&list, "a slots = 2\nb cpu=3 sockets=2 cores = 8\nc:4 binding=user:0,1 ifhn=c-ib # = 5\n"
                                      "d count =5 slots-max= 6\ne slots\t=\t7\n"), RANK_OK);
    assert_int_equal(list.n, 5);
    assert_int_equal(list.host[0].slots, 2);
    assert_int_equal(list.host[1].slots, 3);
    assert_string_equal(list.host[2].name, "c");
    assert_int_equal(list.host[2].slots, 4);
    assert_int_equal(list.host[3].slots, 5);
    assert_int_equal(list.host[3].most, 6);
    assert_int_equal(list.host[4].slots, 7);
    xr_hostlist_clear(&list);
    for (size_t i = 0; i < RK_ARRAY_LEN(bad); i++) {
        list = (struct xr_hostlist){.n = 0};
        assert_int_equal(read_text(&list, bad[i]), RANK_ERR_ARG);
        xr_hostlist_clear(&list);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(hosts_and_cores),
                                              cmocka_unit_test(variables), cmocka_unit_test(refused),
                                              cmocka_unit_test(hostfile_words)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
