/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_test.c: parse options, pack messages, trees and exit statuses. */
#include "launcher/util/pack.h"
#include "launcher/exec/environ.h"
#include "launcher/iof/stdin_credit.h"
#include "launcher/job/job.h"
#include "launcher/bootstrap/setup.h"
#include "launcher/overlay/kary.h"
#include "launcher/job/exit_status.h"
#include "lib/base/auth.h"
#include "lib/base/compiler.h"
#include "tests/launcher/unit/option_line.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* --------------------------------------------------------------------- options */

static void good_options(void **state)
{
    struct xr_options o;
    char err[256];

    (void)state;
    assert_int_equal(option_line_parse(&o, err, sizeof(err), "app"), RANK_OK);
    assert_int_equal(o.n, 0); /* as hosts have slots */
    assert_int_equal(o.where.request.bind, XR_BIND_SHARE);
    assert_false(o.go_on);
    assert_string_equal(o.apps[0].command[0], "app");
    xr_options_free(&o);
    assert_int_equal(option_line_parse(&o, err, sizeof(err),
                           "-n 4 -x A=1 -x B --wdir /tmp --tag-output --timeout 2.5 --bind=core "
                           "--on-failure continue -v -- -app -n 5"),
                     RANK_OK);
    assert_int_equal(o.n, 4);
    assert_int_equal(o.apps[0].nset, 2);
    assert_string_equal(o.apps[0].set[0], "A=1");
    assert_string_equal(o.apps[0].set[1], "B");
    assert_string_equal(o.apps[0].wdir, "/tmp");
    assert_true(o.tag_output);
    assert_true(o.timeout > 2.4 && o.timeout < 2.6);
    assert_int_equal(o.where.request.bind, XR_BIND_CORE);
    assert_true(o.go_on);
    assert_true(o.verbose);
    assert_string_equal(o.apps[0].command[0], "-app");
    assert_string_equal(o.apps[0].command[1], "-n");
    assert_string_equal(o.apps[0].command[2], "5");
    xr_options_free(&o);
    /* Several programs, each with options of its own. */
    assert_int_equal(option_line_parse(&o, err, sizeof(err),
                           "-n 2 -x A=1 -v a x : b : -n 3 --wdir / -x B=2 -x C=3 -- c : -n 4 d"),
                     RANK_OK);
    assert_int_equal(o.n, 10);
    assert_int_equal(o.napps, 4);
    assert_string_equal(o.apps[0].command[1], "x");
    assert_null(o.apps[0].command[2]);
    assert_string_equal(o.apps[0].set[0], "A=1");
    assert_int_equal(o.apps[1].n, 1);
    assert_int_equal(o.apps[1].nset, 0);
    assert_null(o.apps[1].wdir);
    assert_int_equal(o.apps[2].n, 3);
    assert_int_equal(o.apps[2].nset, 2);
    assert_string_equal(o.apps[2].set[1], "C=3");
    assert_string_equal(o.apps[2].wdir, "/");
    assert_string_equal(o.apps[2].command[0], "c");
    assert_string_equal(o.apps[3].command[0], "d");
    xr_options_free(&o);
    /* Hosts add up. */
    assert_int_equal(option_line_parse(&o, err, sizeof(err), "--host a:2 --hostfile f -H b,c --hostfile g --host=d app"), RANK_OK);
    assert_string_equal(o.where.hosts, "a:2,b,c,d");
    assert_int_equal(o.where.nhostfiles, 2);
    assert_string_equal(o.where.hostfiles[0], "f");
    assert_string_equal(o.where.hostfiles[1], "g");
    xr_options_free(&o);
    assert_int_equal(option_line_parse(&o, err, sizeof(err), "--host a --hostfile f " XR_OPTIONS_ANEW " --hostfile g app"), RANK_OK);
    assert_string_equal(o.where.hosts, "a");
    assert_int_equal(o.where.nhostfiles, 1);
    assert_string_equal(o.where.hostfiles[0], "g");
    xr_options_free(&o);
    /* What follows the program is the program's. */
    assert_int_equal(option_line_parse(&o, err, sizeof(err), "app --help -n x"), RANK_OK);
    assert_false(o.help);
    xr_options_free(&o);
}

static void bad_options(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"-n 0 app", "-n is '0'"},
        {"-n 2000000 app", "from 1 to"},
        {"-np app", "-n is 'app'"},
        {"-n", "needs a value"},
        {"--tagoutput app", "did you mean --tag-output?"},
        {"--bnid core app", "did you mean --bind?"},
        {"--wdri=/ app", "no option --wdri; did you mean --wdir?"},
        {"--completely-else app", "xrun --help lists them"},
        {"-x 9=1 app", "-x is '9=1'"},
        {"--timeout 0 app", "more than 0"},
        {"--timeout nan app", "more than 0"},
        {"--timeout 1h app", "--timeout is '1h'"},
        {"--version=1", "takes no value"},
        {"-v", "no program given"},
        {"", "no program given"},
        {"a :", "program 2: no program given"},
        {": a", "no program given"},
        {"a : : b", "program 2: no program given"},
        {"a : -n 0 b", "program 2: -n is '0'"},
        {"a : -n 2 --tag-output b", "program 2: --tag-output is for the whole job"},
        {"a : b : --timeout 5 c", "program 3: --timeout is for the whole job"},
        {"-n 1000000 a : -n 1000000 b", "program 2: -n is 1000000, which makes more than"},
    };

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(cases); i++) {
        struct xr_options o;
        char err[256] = "";
        assert_int_equal(option_line_parse(&o, err, sizeof(err), cases[i].line), RANK_ERR_ARG);
        if (!strstr(err, cases[i].says))
            fail_msg("'%s' gives '%s', not '%s'", cases[i].line, err, cases[i].says);
        xr_options_free(&o);
    }
}

/* What a rank gets from xrun is never an option of an xrun below it. */
static void variables_apart(void **state)
{
    struct xr_option_row row, other;
    size_t n = 0;

    (void)state;
    for (size_t i = 0; xr_options_row(i, &row); i++) {
        assert_false(xr_environ_own(row.variable));
        for (size_t k = 0; row.variable[0] && k < i && xr_options_row(k, &other); k++)
            assert_string_not_equal(row.variable, other.variable);
        n += strcmp(row.variable, "XRUN_TIMEOUT") == 0 || strcmp(row.variable, "XRUN_N") == 0 ||
             strcmp(row.variable, "XRUN_VERBOSE") == 0;
        assert_string_not_equal(row.variable, "XRUN_HELP");
    }
    assert_int_equal(n, 3);
}

/* --------------------------------------------------------------- standard input */

static void slowest_feeds(void **state)
{
    struct xr_stdin_credit *f = xr_stdin_credit_open(3);

    (void)state;
    assert_non_null(f);
    xr_stdin_credit_sent(f, 100);
    assert_int_equal(xr_stdin_credit_taken(f, 0, 100), 0);
    assert_int_equal(xr_stdin_credit_taken(f, 1, 30), 0);
    assert_int_equal(xr_stdin_credit_taken(f, 2, 50), 30);
    assert_int_equal(xr_stdin_credit_taken(f, 1, 60), 20);
    assert_int_equal(xr_stdin_credit_end(f, 2), 40);
    assert_int_equal(xr_stdin_credit_taken(f, 2, 10), 0); /* it is gone */
    assert_int_equal(xr_stdin_credit_taken(f, 1, 500), 10); /* no more than was sent */
    assert_int_equal(xr_stdin_credit_taken(f, 7, 1), 0);
    xr_stdin_credit_sent(f, 5);
    assert_int_equal(xr_stdin_credit_end(f, 0), 0);
    assert_true(xr_stdin_credit_reads(f, 1));
    assert_int_equal(xr_stdin_credit_end(f, 1), 5); /* no rank waits for it any more */
    assert_false(xr_stdin_credit_any(f));
    xr_stdin_credit_close(f);
    xr_stdin_credit_close(NULL);
}

/* --------------------------------------------------------------------- packing */

static void fill(struct xr_job *job)
{
    static char *argv[] = {"app", "", "an argument", NULL}, *other[] = {"b", NULL},
                *env[] = {"A=1", NULL}, *none[] = {NULL};
    static struct xr_app apps[] = {
        {.first = 0, .n = 2, .program = "/bin/app", .argv = argv, .env = none, .wdir = "/"},
        {.first = 2, .n = 3, .program = "/bin/b", .argv = other, .env = env, .wdir = "/tmp"}};

    static char *hosts[] = {"a", "b", "c", NULL};
    static uint32_t host_of[] = {0, 0, 2, 2, 0};

    *job = (struct xr_job){.id = "job-1",
                           .size = 5,
                           .apps = apps,
                           .napps = 2,
                           .env = env,
                           .hosts = hosts,
                           .nhosts = 3,
                           .host_of = host_of,
                           .fanout = 2,
                           .universe = 9,
                           .slots_given = true,
                           .nofile = 1024,
                           .started_ns = 1ull << 60};
}

static void job_round_trip(void **state)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct xr_job in, out;

    (void)state;
    fill(&in);
    xr_job_pack(&in, &p);
    assert_false(p.failed);
    u = (struct xr_unpacker){p.data, p.len, false};
    assert_int_equal(xr_job_unpack(&u, &out), RANK_OK);
    assert_string_equal(out.id, in.id);
    assert_int_equal(out.size, 5);
    assert_int_equal(out.napps, 2);
    assert_string_equal(out.apps[0].argv[1], "");
    assert_string_equal(out.apps[0].argv[2], "an argument");
    assert_null(out.apps[0].argv[3]);
    assert_null(out.apps[0].env[0]);
    assert_string_equal(out.apps[1].env[0], "A=1");
    assert_string_equal(out.apps[1].program, "/bin/b");
    assert_string_equal(out.apps[1].wdir, "/tmp");
    assert_ptr_equal(xr_job_app_of(&out, 1), &out.apps[0]);
    assert_ptr_equal(xr_job_app_of(&out, 2), &out.apps[1]);
    assert_ptr_equal(xr_job_app_of(&out, 4), &out.apps[1]);
    assert_string_equal(out.env[0], "A=1");
    assert_int_equal(out.nhosts, 3);
    assert_int_equal(out.fanout, 2);
    assert_int_equal(out.universe, 9);
    assert_true(out.slots_given);
    assert_string_equal(out.hosts[2], "c");
    assert_memory_equal(out.host_of, in.host_of, sizeof(uint32_t) * 5);
    assert_int_equal(xr_job_ranks_on(&out, 0), 3);
    assert_int_equal(xr_job_ranks_on(&out, 1), 0);
    assert_true(out.started_ns == in.started_ns);
    xr_job_clear(&out);
    xr_packer_free(&p);
}

/* Whatever is cut off or flipped: an error or another job, never more than was given. */
static void job_damaged(void **state)
{
    struct xr_packer p = {0};
    struct xr_job in, out;

    (void)state;
    fill(&in);
    xr_job_pack(&in, &p);
    for (size_t len = 0; len < p.len; len++) {
        uint8_t *copy = malloc(len ? len : 1); /* of its own size, for the address sanitizer */
        struct xr_unpacker u = {copy, len, false};
        memcpy(copy, p.data, len);
        assert_int_equal(xr_job_unpack(&u, &out), RANK_ERR_ARG);
        xr_job_clear(&out);
        free(copy);
    }
    for (size_t at = 0; at < p.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct xr_unpacker u = {p.data, p.len, false};
            p.data[at] ^= (uint8_t)(1 << bit);
            (void)xr_job_unpack(&u, &out);
            xr_job_clear(&out);
            p.data[at] ^= (uint8_t)(1 << bit);
        }
    }
    xr_packer_free(&p);
}

static void strings_that_lie(void **state)
{
    static const uint8_t huge[] = {0xfe, 0xff, 0xff, 0xff, 'a'};
    static const uint8_t unended[] = {2, 0, 0, 0, 'a', 'b'};
    static const uint8_t inner[] = {3, 0, 0, 0, 'a', 0, 0};
    struct xr_unpacker u;

    (void)state;
    u = (struct xr_unpacker){huge, sizeof(huge), false};
    assert_null(xr_unpack_string(&u));
    assert_true(u.failed);
    u = (struct xr_unpacker){huge, sizeof(huge), false};
    assert_null(xr_unpack_strings(&u));
    assert_true(u.failed);
    u = (struct xr_unpacker){unended, sizeof(unended), false};
    assert_null(xr_unpack_string(&u));
    assert_true(u.failed);
    u = (struct xr_unpacker){inner, sizeof(inner), false};
    assert_null(xr_unpack_string(&u));
    assert_true(u.failed);
}

/* ------------------------------------------------------------------- the tree */

/* For any size, fan-out and head: no node has more children than the fan-out, the head is a child of the root, and all functions
 * on two nodes agree. */
static void shapes(void **state)
{
    static const struct xr_kary some[] = {{1, 1, 0},   {7, 2, 0},     {7, 2, 1},     {7, 2, 2},  {7, 2, 6},
                                           {7, 1, 6},   {40, 32, 39},  {40, 32, 31},  {40, 3, 17}, {33, 32, 32},
                                           {500, 32, 400}, {500, 4, 1}, {5, 4096, 4}};

    (void)state;
    for (size_t k = 0; k < RK_ARRAY_LEN(some); k++) {
        const struct xr_kary *s = &some[k];
        uint32_t found = 0;
        assert_int_equal(xr_kary_above(s, s->head), XR_NODE_FRONT);
        for (uint32_t i = 0; i <= s->nodes; i++) {
            uint32_t top = i < s->nodes ? i : XR_NODE_FRONT, n = xr_kary_children(s, top);
            assert_in_range(n, 0, s->fanout);
            for (uint32_t c = 0; c < n; c++) {
                uint32_t child = xr_kary_child(s, top, c);
                assert_true(child < s->nodes);
                assert_int_equal(xr_kary_above(s, child), top);
                assert_true(xr_kary_is_below(s, top, child));
                assert_int_equal(xr_kary_way(s, top, child), c);
                assert_int_equal(xr_kary_way(s, child, top), XR_NODE_FRONT);
            }
            found += n;
            assert_true(xr_kary_is_below(s, XR_NODE_FRONT, top));
            assert_int_equal(xr_kary_way(s, top, top), XR_NODE_FRONT);
            if (top == XR_NODE_FRONT)
                continue;
            assert_true(xr_kary_above(s, top) != top);
            assert_int_equal(xr_kary_child(s, XR_NODE_FRONT, xr_kary_way(s, XR_NODE_FRONT, top)),
                             xr_kary_above(s, top) == XR_NODE_FRONT
                                 ? top
                                 : xr_kary_child(s, XR_NODE_FRONT,
                                                  xr_kary_way(s, XR_NODE_FRONT, xr_kary_above(s, top))));
        }
        assert_int_equal(found, s->nodes); /* each has one parent only */
    }
    assert_int_equal(xr_kary_way(&some[0], XR_NODE_FRONT, 1), XR_NODE_FRONT); /* it is not there */
}

/* --------------------------------------------------------------- launch parameters */

static rank_status_t unpack_setup(const uint8_t *data, size_t len, struct xr_setup *out, char *err, size_t errlen)
{
    rank_status_t st;
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], data, len), len); /* it fits into the pipe */
    close(fd[1]);
    st = xr_setup_read(fd[0], 1000, out, err, errlen);
    close(fd[0]);
    return st;
}

static void setups(void **state)
{
    static char *names[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b", (char *)(uintptr_t) "c"};
    static const size_t protocol = 8, version = 12, rest = 108;
    struct xr_setup in = {.secret = "secret", .secret_node = XR_NODE_FRONT, .shape = {3, 1, 2}, .names = names, .port = 7, .agent = (char *)(uintptr_t) "ssh",
                          .program = (char *)(uintptr_t) "/bin/xrun"}, out;
    struct xr_packer p = {0};
    char err[512];

    (void)state;
    assert_true(rk_auth_open());
    xr_setup_send(&in, 1, &p);
    assert_false(p.failed);
    assert_int_equal(unpack_setup(p.data, p.len, &out, err, sizeof(err)), RANK_OK);
    assert_memory_equal(&out.shape, &in.shape, sizeof(in.shape));
    assert_int_equal(out.node, 1);
    assert_memory_not_equal(out.secret, in.secret, RK_AUTH_KEY); /* its own key */
    assert_string_equal(out.names[0], "a"); /* below: the chain is c, b, a */
    assert_string_equal(out.names[1], "b");
    assert_null(out.names[2]);
    xr_setup_clear(&out);
    for (size_t len = 0; len < p.len; len += len < rest + 8 ? 1 : 11) {
        assert_int_not_equal(unpack_setup(p.data, len, &out, err, sizeof(err)), RANK_OK);
        assert_non_null(strstr(err, "does not hold an agent's setup"));
        xr_setup_clear(&out);
    }
    /* Another version, with messages of another form: named. */
    memcpy(p.data + version, "7.7\33", 5);
    p.data[rest]++;
    assert_int_not_equal(unpack_setup(p.data, p.len, &out, err, sizeof(err)), RANK_OK);
    assert_non_null(strstr(err, "version 7.7?"));
    assert_non_null(strstr(err, rank_version()));
    xr_setup_clear(&out);
    p.data[rest]--; /* the same form: the parent is to report it */
    assert_int_equal(unpack_setup(p.data, p.len, &out, err, sizeof(err)), RANK_OK);
    xr_setup_clear(&out);
    p.data[protocol]++; /* whatever follows is not read */
    assert_int_not_equal(unpack_setup(p.data, rest + 4, &out, err, sizeof(err)), RANK_OK);
    assert_non_null(strstr(err, "version 7.7? (protocol"));
    xr_setup_clear(&out);
    xr_packer_free(&p);
}

/* -------------------------------------------------------------------- exit statuses */

static void codes(void **state)
{
    char how[160];

    (void)state;
    assert_false(xr_exit_status_failed(0, false));
    assert_true(xr_exit_status_failed(0, true));
    assert_int_equal(xr_exit_status_code(0, true), 1);
    assert_int_equal(xr_exit_status_code(3 << 8, false), 3);
    assert_int_equal(xr_exit_status_code(3 << 8, true), 3);
    assert_int_equal(xr_exit_status_code(SIGSEGV, false), 139);
    assert_int_equal(xr_exit_status_code(SIGKILL, true), 137);
    assert_int_equal(xr_exit_status_abort_code(7), 7);
    assert_int_equal(xr_exit_status_abort_code(0), 0);
    assert_int_equal(xr_exit_status_abort_code(256), 1);
    assert_int_equal(xr_exit_status_abort_code(-1), 255);
    xr_exit_status_how(SIGKILL, true, how, sizeof(how));
    assert_string_equal(how, "was killed by signal 9 (Killed)");
    xr_exit_status_time(1500000000u, how, sizeof(how));
    assert_string_equal(how, "1.500 s");
}

static void foreign_variables(void **state)
{
    (void)state;
    assert_true(xr_environ_foreign("PMIX_RANK=0"));
    assert_true(xr_environ_foreign("PMI_FD=3"));
    assert_true(xr_environ_foreign("OMPI_COMM_WORLD_RANK=0"));
    assert_true(xr_environ_foreign("XRUN_JOB=a"));
    assert_false(xr_environ_foreign("PMIX_MCA_gds=hash"));
    assert_false(xr_environ_foreign("OMPI_MCA_pml=ucx"));
    assert_false(xr_environ_foreign("SLURM_JOB_ID=1"));
    assert_false(xr_environ_foreign("RANK_LOG=info"));
    assert_false(xr_environ_foreign("PATH=/bin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_options),     cmocka_unit_test(bad_options),
        cmocka_unit_test(variables_apart),
        cmocka_unit_test(slowest_feeds),
        cmocka_unit_test(job_round_trip),   cmocka_unit_test(job_damaged),
        cmocka_unit_test(strings_that_lie), cmocka_unit_test(codes),
        cmocka_unit_test(shapes),           cmocka_unit_test(setups),
        cmocka_unit_test(foreign_variables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
