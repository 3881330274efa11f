/* SPDX-License-Identifier: BSD-3-Clause */
/* base_test.c: test log, list, clock and status list. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "lib/base/list.h"
#include "lib/base/log.h"
#include "lib/rank.h"

#include <errno.h>
#include <fcntl.h>

static void log_line(void **state)
{
    struct unit_stderr said;

    (void)state;
    rk_log_identity("prog", 7, "somehost");
    rk_log_threshold = RK_LOG_WARN;
    errno = ENOENT;
    unit_stderr_begin(&said);
    errno = ENOENT;
    rk_error("no %s: %m", "thing");
    assert_int_equal(errno, ENOENT);
    rk_warn("one");
    rk_info("not this");
    rk_debug("nor this");
    unit_stderr_end(&said);
    assert_string_equal(said.text, "prog: rank 7 (somehost): error: no thing: No such file or directory\n"
                                   "prog: rank 7 (somehost): warning: one\n");
    rk_log_threshold = RK_LOG_DEBUG;
    rk_log_identity("prog", -1, "somehost");
    unit_stderr_begin(&said);
    rk_debug("now this");
    unit_stderr_end(&said);
    assert_string_equal(said.text, "prog: debug: now this\n");
    rk_log_threshold = RK_LOG_WARN;
}

/* Arguments of a message that is not printed are not evaluated. */
static void log_lazy(void **state)
{
    int n = 0;

    (void)state;
    rk_log_threshold = RK_LOG_ERROR;
    rk_warn("%d", ++n);
    assert_int_equal(n, 0);
    rk_log_threshold = RK_LOG_WARN;
}

static void log_long(void **state)
{
    struct unit_stderr said;
    static char text[6000];

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    rk_log_identity("prog", 0, NULL);
    unit_stderr_begin(&said);
    rk_error("%s", text);
    rk_error("next");
    unit_stderr_end(&said);
    /* Cut, still one line. */
    assert_contains(said.text, "a\nprog: rank 0: error: next\n");
    assert_true(strlen(said.text) < sizeof(text));
}

/* A closed or full stderr is not the program's end. */
static void log_closed(void **state)
{
    int saved = dup(STDERR_FILENO), full = open("/dev/full", O_WRONLY);

    (void)state;
    fflush(stderr);
    close(STDERR_FILENO);
    errno = 77;
    rk_error("into nothing");
    assert_int_equal(errno, 77);
    dup2(full, STDERR_FILENO);
    rk_error("into what is full");
    assert_int_equal(errno, 77);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(full);
}

struct item {
    int n;
    struct rk_link link;
};

static void list(void **state)
{
    struct rk_link head, *l, *next;
    struct item it[5];
    int sum = 0;

    (void)state;
    rk_list_init(&head);
    assert_true(rk_list_empty(&head));
    for (int i = 0; i < 5; i++) {
        it[i].n = i;
        rk_list_append(&head, &it[i].link);
    }
    rk_list_for_each(l, &head)
    {
        assert_int_equal(rk_list_entry(l, struct item, link)->n, sum);
        sum++;
    }
    assert_int_equal(sum, 5);
    rk_list_remove(&it[2].link);
    rk_list_remove(&it[2].link); /* twice is harmless */
    assert_true(rk_list_empty(&it[2].link));
    rk_list_insert_before(&it[0].link, &it[2].link);
    assert_ptr_equal(head.next, &it[2].link);
    sum = 0;
    rk_list_for_each_safe(l, next, &head)
    {
        sum += rk_list_entry(l, struct item, link)->n;
        rk_list_remove(l);
    }
    assert_int_equal(sum, 10);
    assert_true(rk_list_empty(&head));
}

static void clock_goes_on(void **state)
{
    uint64_t a = rk_clock_ns(), b = rk_clock_ns();

    (void)state;
    assert_true(b >= a);
    usleep(2000);
    b = rk_clock_ns();
    assert_true(b - a >= 2000000 && b - a < 60000000000u);
}

static void statuses(void **state)
{
    static const struct {
        int code;
        const char *text;
    } all[] = {
#define ROW(code, name, text) {code, text},
        RANK_STATUS_MAP(ROW)
#undef ROW
    };
    size_t n = sizeof(all) / sizeof(all[0]);

    (void)state;
    assert_int_equal(RANK_OK, 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(all[i].code == 0 || all[i].code < 0);
        assert_string_equal(rank_status_string((rank_status_t)all[i].code), all[i].text);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(all[i].code, all[k].code);
            assert_string_not_equal(all[i].text, all[k].text);
        }
    }
    assert_string_equal(rank_status_string((rank_status_t)1), "unknown status");
    assert_string_equal(rank_status_string((rank_status_t)-1000), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_line), cmocka_unit_test(log_lazy),      cmocka_unit_test(log_long),
        cmocka_unit_test(log_closed), cmocka_unit_test(list),        cmocka_unit_test(clock_goes_on),
        cmocka_unit_test(statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
