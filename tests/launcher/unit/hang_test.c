/* SPDX-License-Identifier: BSD-3-Clause */
/* hang_test.c: report ranks that wait for each other. */
#include "launcher/monitor/hang_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void add(struct xr_hang *h, int32_t rank, int32_t peer, const char *text)
{
    struct xr_hang_wait w = {.text = text, .npeers = 1, .peers = {peer}};

    xr_hang_add(h, &rank, 1, &w);
}

static void a_ring_is_a_cycle(void **state)
{
    struct xr_hang *h = xr_hang_open(64);
    char text[256];

    (void)state;
    for (int32_t r = 0; r < 3; r++)
        add(h, r, r + 1, "waits");
    assert_false(xr_hang_cycle(h, text, sizeof(text))); /* rank 3 does not wait */
    add(h, 3, 1, "waits");
    assert_true(xr_hang_cycle(h, text, sizeof(text)));
    assert_string_equal(text, "1 -> 2 -> 3 -> 1"); /* rank 0 waits for it, and is no part of it */
    xr_hang_drop(h, 2);
    xr_hang_drop(h, 2);
    assert_int_equal(xr_hang_count(h), 3);
    assert_false(xr_hang_cycle(h, text, sizeof(text)));
    for (int32_t r = 0; r < 64; r++)
        add(h, r, (r + 1) % 64, "waits");
    assert_true(xr_hang_cycle(h, text, sizeof(text)));
    assert_non_null(strstr(text, "15 -> ... (48 more) -> 0"));
    assert_false(strlen(text) + 1 > sizeof(text));
    assert_true(xr_hang_cycle(h, text, 10)); /* cut, and no byte beyond */
    assert_string_equal(text, "0 -> 1 ->");
    xr_hang_close(h);
}

static void peers_may_be_anything(void **state)
{
    struct xr_hang *h = xr_hang_open(2);
    struct xr_hang_wait w = {.text = "", .npeers = 1000, .peers = {-5, 7, INT32_MIN, INT32_MAX}};
    int32_t ranks[2] = {1, 99};
    char text[64];

    (void)state;
    for (int i = 4; i < RK_BOARD_PEERS; i++)
        w.peers[i] = -1;
    xr_hang_add(h, ranks, 2, &w);
    assert_int_equal(xr_hang_count(h), 1);
    assert_false(xr_hang_cycle(h, text, sizeof(text)));
    add(h, 0, 0, "itself");
    assert_true(xr_hang_cycle(h, text, sizeof(text)));
    assert_string_equal(text, "0 -> 0");
    xr_hang_close(h);
    xr_hang_close(NULL);
}

static void note(void *arg, const int32_t *ranks, uint32_t n, const struct xr_hang_wait *w)
{
    char *out = arg;
    size_t at = strlen(out);

    snprintf(out + at, 4096 - at, "%d*%u:%s;", ranks[0], n, w->text);
}

static void ranks_alike_share_a_line(void **state)
{
    struct xr_hang *h = xr_hang_open(100);
    char out[4096] = "", text[16];

    (void)state;
    for (int32_t r = 0; r < 4; r++)
        add(h, r, 5, r % 2 ? "odd" : "even");
    assert_int_equal(xr_hang_lines(h, note, out), 0);
    assert_string_equal(out, "0*2:even;1*2:odd;");
    for (int32_t r = 0; r < 100; r++) {
        snprintf(text, sizeof(text), "%d", r);
        add(h, r, 5, text);
    }
    *out = '\0';
    assert_int_equal(xr_hang_lines(h, note, out), 100 - XR_HANG_LINES);
    xr_hang_close(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_ring_is_a_cycle), cmocka_unit_test(peers_may_be_anything),
                                       cmocka_unit_test(ranks_alike_share_a_line)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
