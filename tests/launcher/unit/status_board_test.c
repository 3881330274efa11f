/* SPDX-License-Identifier: BSD-3-Clause */
/* status_board_test.c: write the status board as a rank, read it as the launcher. */
#include "launcher/monitor/status_board.h"
#include "launcher/monitor/proc_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static struct rk_board *open_slot(const struct xr_agent_board *b, uint32_t slot)
{
    char where[96];

    rk_board_where(where, sizeof(where), getpid(), b->fd, b->head->nonce, slot);
    return rk_board_open(where);
}

static void what_is_written_is_read(void **state)
{
    struct rk_wait_for what = {.call = "allreduce", .number = 812, .flags = RK_WAIT_TEAM,
                               .team_size = 8, .npeers = 1, .peers = {5}};
    struct xr_agent_board b;
    struct rk_board_view v;
    struct rk_board *mine;
    char text[200];

    (void)state;
    assert_true(xr_agent_board_open(&b, 3));
    mine = open_slot(&b, 2);
    assert_non_null(mine);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.state, RK_BOARD_NONE);
    assert_int_equal(v.pid, getpid());
    rk_board_write(mine, RK_BOARD_WAITING, 77, &what);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.state, RK_BOARD_WAITING);
    assert_int_equal(v.since_ns, 77);
    xr_status_board_wait_text(&v.what, text, sizeof(text));
    assert_string_equal(text, "allreduce #812 on world, waits for rank 5");
    mine->until_ns = UINT64_MAX;
    rk_board_write(mine, RK_BOARD_WAITING, 77, &what);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.state, RK_BOARD_WAITING);
    mine->until_ns = 1; /* since then it has not been reported again */
    rk_board_write(mine, RK_BOARD_WAITING, 77, &what);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.state, RK_BOARD_IN);
    mine->until_ns = 0;
    rk_board_write(mine, RK_BOARD_IN, 78, NULL);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.state, RK_BOARD_IN);
    assert_int_equal(v.refused, 0);
    rk_board_refused(mine);
    rk_board_refused(mine);
    assert_true(rk_board_read(&b.slots[2], &v));
    assert_int_equal(v.refused, 2);
    assert_true(rk_board_read(&b.slots[1], &v));
    assert_int_equal(v.pid, 0);
    rk_board_close(mine);
    xr_agent_board_close(&b);
    xr_agent_board_close(&b); /* once more is fine */
    rk_board_close(NULL);
}

/* Nothing that the variable can hold is more than "no board". */
static void what_is_no_board(void **state)
{
    static const char *const wrong[] = {"", "x", "1", "-1:3:1:0", "1:-1:1:0", "99999999:0:1:0",
                                        "1:0:1", "1:0:1:0x", "1:0:zz:0"};
    int plain = memfd_create("xrun-board", MFD_CLOEXEC);
    struct xr_agent_board b;
    char where[96];

    (void)state;
    assert_null(rk_board_open(NULL));
    for (size_t i = 0; i < RK_ARRAY_LEN(wrong); i++)
        assert_null(rk_board_open(wrong[i]));
    /* Memory that could shrink, though it holds the right words. */
    assert_true(xr_agent_board_open(&b, 1));
    assert_int_equal(ftruncate(plain, (off_t)b.bytes), 0);
    assert_int_equal(pwrite(plain, b.head, b.bytes, 0), (ssize_t)b.bytes);
    rk_board_where(where, sizeof(where), getpid(), plain, b.head->nonce, 0);
    assert_null(rk_board_open(where));
    close(plain);
    /* Another nonce, another slot, a file that is no memory. */
    rk_board_where(where, sizeof(where), getpid(), b.fd, b.head->nonce + 1, 0);
    assert_null(rk_board_open(where));
    assert_null(open_slot(&b, 1));
    rk_board_where(where, sizeof(where), getpid(), STDERR_FILENO, b.head->nonce, 0);
    assert_null(rk_board_open(where));
    /* A head that promises more slots than there is room for. */
    b.head->slots = 1000;
    assert_null(open_slot(&b, 500));
    b.head->magic++;
    assert_null(open_slot(&b, 0));
    xr_agent_board_close(&b);
}

/* A rank may write anything, and may die while it writes. */
static void what_a_rank_may_write(void **state)
{
    struct xr_agent_board b;
    struct rk_board_view v;
    struct rk_board *mine;
    struct rk_wait_for what;
    char text[320];

    (void)state;
    assert_true(xr_agent_board_open(&b, 1));
    mine = open_slot(&b, 0);
    memset(&what, 0xff, sizeof(what));
    rk_board_write(mine, RK_BOARD_WAITING, UINT64_MAX, &what);
    assert_true(rk_board_read(&b.slots[0], &v));
    xr_status_board_wait_text(&v.what, text, sizeof(text));
    assert_true(strlen(text) < sizeof(text));
    for (const char *c = text; *c; c++)
        assert_in_range(*c, ' ', '~');
    memset(what.call, '\n', sizeof(what.call));
    what.flags = 0;
    rk_board_write(mine, RK_BOARD_WAITING, 0, &what);
    assert_true(rk_board_read(&b.slots[0], &v));
    xr_status_board_wait_text(&v.what, text, 40); /* nor past the end of a short text */
    assert_null(strchr(text, '\n'));
    atomic_store(&mine->mine->state, 99);
    assert_false(rk_board_read(&b.slots[0], &v));
    atomic_store(&mine->mine->state, RK_BOARD_IN);
    atomic_fetch_or(&mine->mine->turn, 1);
    assert_false(rk_board_read(&b.slots[0], &v));
    rk_board_write(mine, RK_BOARD_IN, 1, NULL); /* the next one that runs there mends it */
    assert_true(rk_board_read(&b.slots[0], &v));
    rk_board_close(mine);
    xr_agent_board_close(&b);
}

/* Where files may not grow there is no board, and the attempt kills no process. */
static void no_room_for_a_board(void **state)
{
    struct rlimit before, tiny;
    struct xr_agent_board b;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tiny = (struct rlimit){100, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
    assert_false(xr_agent_board_open(&b, 1));
    assert_null(b.head);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void ranks_as_text(void **state)
{
    static const int32_t some[] = {0, 1, 2, 3, 7, 9, 10};
    static const int32_t visitors[] = {1, 4, RK_BOARD_OTHER_JOB(0), RK_BOARD_OTHER_JOB(1), RK_BOARD_OTHER_JOB(2), RK_BOARD_OTHER_JOB(5)};
    static const int32_t wrong[] = {INT32_MIN, INT32_MAX};
    char text[64];

    (void)state;
    xr_status_board_ranks_text(some, 7, 7, text, sizeof(text));
    assert_string_equal(text, "0-3,7,9,10");
    xr_status_board_ranks_text(some, 5, 20, text, sizeof(text));
    assert_string_equal(text, "0-3,7 and 15 more");
    xr_status_board_ranks_text(some, 1, 1, text, sizeof(text));
    assert_string_equal(text, "0");
    xr_status_board_ranks_text(some, 0, 0, text, sizeof(text));
    assert_string_equal(text, "");
    xr_status_board_ranks_text(some, 7, 7, text, 5);
    assert_string_equal(text, "0-3,");
    xr_status_board_ranks_text(visitors, 6, 6, text, sizeof(text));
    assert_string_equal(text, "1,4, 0-2,5 of another job");
    xr_status_board_ranks_text(visitors + 2, 1, 1, text, sizeof(text));
    assert_string_equal(text, "0 of another job");
    xr_status_board_ranks_text(wrong, 2, 2, text, sizeof(text));
    assert_string_equal(text, "2147483647 of another job, 2147483647");
}

/* This process: first it works, then, by its slot, it waits; a slot of another's does not count. */
static void looking_at_a_process(void **state)
{
    struct rk_wait_for what = {.call = "probe"};
    struct xr_proc_state_past past = {0};
    struct xr_agent_board b;
    struct rk_board *mine;
    struct xr_proc_state look;
    char text[400];

    (void)state;
    xr_proc_state_read(getpid(), NULL, 1000, &past, &look);
    assert_int_equal(look.doing, XR_DOING_WORK); /* it reads its own state */
    assert_int_equal(look.pid, getpid());
    assert_true(xr_agent_board_open(&b, 1));
    mine = open_slot(&b, 0);
    rk_board_write(mine, RK_BOARD_WAITING, 500, &what);
    xr_proc_state_read(getpid(), &b.slots[0], 2000, &past, &look);
    assert_int_equal(look.doing, XR_DOING_WAIT);
    assert_int_equal(look.since_ns, 500);
    assert_string_equal(look.text, "probe");
    xr_proc_state_text(&look, text, sizeof(text));
    assert_string_equal(text, "probe");
    rk_board_refused(mine);
    rk_board_refused(mine);
    xr_proc_state_read(getpid(), &b.slots[0], 2000, &past, &look);
    xr_proc_state_text(&look, text, sizeof(text));
    assert_string_equal(text, "2 frames refused; probe");
    atomic_store(&mine->mine->pid, 1);
    xr_proc_state_read(getpid(), &b.slots[0], 3000, &past, &look);
    assert_int_equal(look.doing, XR_DOING_WORK);
    assert_int_equal(look.pid, getpid());
    xr_proc_state_read(0x3fffffff, NULL, 4000, &past, &look);
    assert_int_equal(look.doing, XR_DOING_GONE);
    rk_board_close(mine);
    xr_agent_board_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read), cmocka_unit_test(what_is_no_board),
        cmocka_unit_test(what_a_rank_may_write), cmocka_unit_test(ranks_as_text),
        cmocka_unit_test(no_room_for_a_board),
        cmocka_unit_test(looking_at_a_process)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
