/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error_lines.c: check that an error's line and rank_status_reason are equal.
 *
 * Each case fails with standard error in a file. RANK_ERRORS=quiet, or a context with that option, prints nothing; the
 * reasons are the same. --abort NAME runs one case, which ends the job under RANK_ERRORS=abort.
 */
#include "tests/mp/mp.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct lines {
    struct mp mp;
    bool quiet;
    int file, stderr_fd;
};

static rank_status_t truncated(struct lines *l, int how)
{
    int numbers[10] = {0};
    rank_request_t req = RANK_REQUEST_NULL;
    rank_envelope_t env;
    rank_status_t st = RANK_OK;
    int done = 0;

    if (l->mp.rank == 0)
        MP_OK(rank_send(numbers, 10, RANK_INT32, l->mp.size - 1, 3, l->mp.world));
    if (l->mp.rank != l->mp.size - 1)
        return RANK_ERR_TRUNCATED;
    if (how == 0)
        return rank_recv(numbers, 5, RANK_INT32, 0, 3, l->mp.world, NULL);
    MP_OK(rank_irecv(numbers, 5, RANK_INT32, 0, 3, l->mp.world, &req));
    if (how == 1)
        return rank_wait(&req, NULL);
    while (!done)
        st = rank_test(&req, &done, &env);
    MP_CHECK_EQ(env.sent_bytes, 40);
    MP_CHECK_EQ(env.bytes, 20);
    return st;
}

static rank_status_t truncated_recv(struct lines *l)
{
    return truncated(l, 0);
}

static rank_status_t truncated_wait(struct lines *l)
{
    return truncated(l, 1);
}

static rank_status_t truncated_test(struct lines *l)
{
    return truncated(l, 2);
}

static rank_status_t unequal_sizes(struct lines *l)
{
    void *p;
    rank_mem_t mem;

    return rank_alloc(l->mp.world, RANK_MEM_HOST, 100 + l->mp.rank, &p, &mem);
}

static rank_status_t no_device(struct lines *l)
{
    void *p;
    rank_mem_t mem;

    return rank_alloc(l->mp.world, RANK_MEM_CUDA, 100, &p, &mem);
}

static rank_status_t second_init(struct lines *l)
{
    (void)l;
    return rank_init(NULL);
}

static rank_status_t bad_tag(struct lines *l)
{
    char c = 0;

    return rank_send(&c, 1, RANK_BYTE, 0, -7, l->mp.world);
}

static rank_status_t mismatch(struct lines *l)
{
    int64_t in[4] = {0}, out[4];
    rank_team_t team;
    rank_status_t st, later;

    MP_OK(rank_team_dup(l->mp.world, &team));
    st = rank_allreduce(in, out, l->mp.rank ? 4 : 3, RANK_INT64, RANK_SUM, team);
    later = rank_barrier(team);
    MP_OK(rank_team_free(&team));
    return st ? st : later;
}

static rank_status_t time_out(struct lines *l)
{
    rank_request_t req;
    rank_status_t st;
    char c;

    MP_OK(rank_irecv(&c, 1, RANK_BYTE, l->mp.rank, 5, l->mp.world, &req));
    st = rank_wait_timed(&req, 1000, NULL);
    MP_OK(rank_cancel(&req));
    MP_STATUS(rank_wait(&req, NULL), RANK_ERR_CANCELED);
    return st;
}

enum { NONE, LAST, FIRST, ALL };

static const struct {
    const char *name;
    rank_status_t (*call)(struct lines *);
    rank_status_t status;
    const char *text; /* NULL: the text of the status alone */
    int printed_by, ranks;
} cases[] = {
    {"truncated", truncated_recv, RANK_ERR_TRUNCATED, "a message of 40 bytes from rank 0 with tag 3 came into a receive of 20 bytes",
     LAST, 1},
    {"truncated_wait", truncated_wait, RANK_ERR_TRUNCATED, "40 bytes", NONE, 1}, /* a kind is printed once */
    {"truncated_test", truncated_test, RANK_ERR_TRUNCATED, "40 bytes", NONE, 1},
    {"unequal_sizes", unequal_sizes, RANK_ERR_ARG, "rank_alloc: the ranks of a team request 100 to ", FIRST, 2},
    {"no_device", no_device, RANK_ERR_NOT_SUPPORTED, "rank_alloc: a rank of the team has no device memory (RANK_CUDA)", FIRST, 1},
    {"second_init", second_init, RANK_ERR_STATE, "rank_init: the library is initialized already", ALL, 1},
    {"tag", bad_tag, RANK_ERR_TAG, "rank_send: tag -7 is negative", ALL, 1},
    {"mismatch", mismatch, RANK_ERR_COLLECTIVE, "count", ALL, 2},
    {"time-out", time_out, RANK_ERR_TIMED_OUT, NULL, NONE, 1},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* Run a case with standard error in a file; returns what was printed. */
static const char *run_case(struct lines *l, int i, char *printed, size_t room)
{
    rank_status_t st;
    const char *reason;
    ssize_t n;

    MP_CHECK(ftruncate(l->file, 0) == 0 && lseek(l->file, 0, SEEK_SET) == 0 && dup2(l->file, STDERR_FILENO) >= 0);
    st = cases[i].call(l);
    MP_CHECK(dup2(l->stderr_fd, STDERR_FILENO) >= 0);
    MP_STATUS(st, cases[i].status);
    reason = rank_status_reason(st);
    n = pread(l->file, printed, room - 1, 0);
    MP_CHECK(n >= 0);
    printed[n] = '\0';
    return reason;
}

static void check_case(struct lines *l, int i)
{
    int me = l->mp.rank, last = l->mp.size - 1, by = cases[i].printed_by;
    bool prints = !l->quiet && (by == ALL || (by == FIRST && me == 0) || (by == LAST && me == last));
    char printed[2048], line[1024];
    const char *reason;

    if (l->mp.size < cases[i].ranks)
        return;
    mp_case(&l->mp, cases[i].name);
    reason = run_case(l, i, printed, sizeof(printed));
    if (cases[i].status == RANK_ERR_TRUNCATED && me != last)
        return;
    if (!cases[i].text)
        MP_CHECK(strcmp(reason, rank_status_string(cases[i].status)) == 0);
    else if (!strstr(reason, cases[i].text))
        mp_fail(__FILE__, __LINE__, "%s: the reason is \"%s\"", cases[i].name, reason);
    snprintf(line, sizeof(line), "error: %s\n", reason);
    if (prints ? !strstr(printed, line) : printed[0] != '\0')
        mp_fail(__FILE__, __LINE__, "%s: the reason is \"%s\", and printed was \"%s\"", cases[i].name, reason, printed);
}

/* A context of a binding makes the process quiet. */
static void check_option(struct lines *l)
{
    rank_ctx_opts_t opts = RANK_CTX_OPTS_INIT;
    rank_ctx_t ctx;

    opts.quiet = 1;
    MP_OK(rank_ctx_open(&opts, &ctx));
    l->quiet = true;
    for (int i = 0; i < CASES; i++)
        check_case(l, i);
    MP_OK(rank_ctx_close(&ctx, 0));
}

int main(int argc, char **argv)
{
    const char *errors = getenv("RANK_ERRORS");
    struct lines l = {.quiet = errors && strcmp(errors, "quiet") == 0};

    mp_start(&l.mp, &argc, argv);
    for (int i = 0; i < CASES && mp_flag(argc, argv, "--abort"); i++) {
        if (strcmp(argv[argc - 1], cases[i].name) == 0)
            MP_STATUS(cases[i].call(&l), cases[i].status);
    }
    if (!mp_flag(argc, argv, "--abort")) {
        l.stderr_fd = dup(STDERR_FILENO);
        l.file = memfd_create("lines", MFD_CLOEXEC);
        MP_CHECK(l.stderr_fd >= 0 && l.file >= 0);
        for (int i = 0; i < CASES; i++)
            check_case(&l, i);
        if (!errors)
            check_option(&l);
        close(l.file);
        close(l.stderr_fd);
    }
    mp_end(&l.mp);
    return 0;
}
