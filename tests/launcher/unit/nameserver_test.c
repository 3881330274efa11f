/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nameserver_test.c: publish and look up data of processes.
 * Many of them, of each range, and replies of any size.
 */
#include "launcher/overlay/protocol.h"
#include "launcher/dpm/nameserver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void publish(struct xr_packer *p, uint32_t range, const char *key)
{
    xr_pack_u32(p, range);
    xr_pack_u32(p, XR_KEEP_PROCESS);
    xr_pack_u32(p, 1);
    xr_pack_string(p, key);
    xr_pack_bytes(p, key, strlen(key));
}

static unsigned nfound;

static void on_found(void *arg, const struct xr_rpc_origin *asker, enum xr_rpc_status status, struct xr_packer *found)
{
    struct xr_unpacker u = {found->data, found->len, found->failed};

    assert_int_equal(status, *(enum xr_rpc_status *)arg);
    if (status == XR_DONE) {
        assert_int_equal(xr_unpack_u32(&u), asker->job);
        nfound++;
    }
    xr_packer_free(found);
}

/* Publish 1,000 names of different keys and 1,000 of one key, with as many lookups that wait for them. */
static void crowd(void **state)
{
    enum { N = 1000 };
    enum xr_rpc_status expected = XR_DONE;
    struct event_base *base = event_base_new();
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct xr_nameserver *names;
    char key[32];

    (void)state;
    assert_non_null(base);
    assert_int_equal(xr_nameserver_open(base, on_found, &expected, &names), RANK_OK);
    nfound = 0;
    for (uint32_t phase = 0; phase < 3; phase++) {
        for (uint32_t i = 0; i < N; i++) {
            struct xr_process client = {.job = 1, .rank = i, .id = "job", .host = "host"};
            const struct xr_rpc_origin asker = {.job = 2};
            snprintf(key, sizeof(key), "port of %u", i);
            if (phase == 0) { /* waits for the next one's, and for its own that all call the same */
                char *keys[] = {key, (char *)(uintptr_t) "port", NULL};
                snprintf(key, sizeof(key), "port of %u", (i + 1) % N);
                xr_pack_u32(&p, XR_RANGE_ALL);
                xr_pack_u32(&p, XR_LOOKUP_ALL);
                xr_pack_u32(&p, 0);
                xr_pack_strings(&p, keys);
                u = (struct xr_unpacker){p.data, p.len, p.failed};
                xr_nameserver_lookup(names, &client, &u, &asker);
            } else {
                publish(&p, phase == 1 ? XR_RANGE_ALL : XR_RANGE_PROCESS, phase == 1 ? key : "port");
                u = (struct xr_unpacker){p.data, p.len, p.failed};
                assert_int_equal(xr_nameserver_publish(names, &client, &u), XR_DONE);
                if (phase == 2)
                    assert_int_equal(nfound, i + 1);
            }
            xr_packer_free(&p);
            if (phase == 2 && i >= N / 2)
                xr_nameserver_ended(names, 1, i, false);
        }
    }
    xr_nameserver_app_ended(names, 1, XR_ALL_RANKS);
    expected = XR_NOT_FOUND;
    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_NOW);
    xr_pack_u32(&p, 0);
    xr_pack_strings(&p, (char *[]){(char *)(uintptr_t) "port of 7", NULL});
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    xr_nameserver_lookup(names, &(struct xr_process){.job = 1, .id = "job", .host = "host"}, &u, &(struct xr_rpc_origin){0});
    xr_packer_free(&p);
    xr_nameserver_close(names);
    event_base_free(base);
}

/* All that is published at once is there or nothing is; and what is for fewer is seen before what is for all. */
static void ranges(void **state)
{
    const struct xr_process client = {.job = 1, .rank = 1, .id = "job", .host = "host"};
    const struct xr_process other = {.job = 1, .rank = 2, .id = "job", .host = "elsewhere"};
    enum xr_rpc_status expected = XR_NOT_FOUND;
    struct event_base *base = event_base_new();
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct xr_nameserver *names;

    (void)state;
    assert_non_null(base);
    assert_int_equal(xr_nameserver_open(base, on_found, &expected, &names), RANK_OK);
    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_KEEP_APP);
    xr_pack_u32(&p, 3);
    for (int i = 0; i < 3; i++) { /* the third is the first again */
        xr_pack_string(&p, i % 2 ? "b" : "a");
        xr_pack_bytes(&p, "x", 1);
    }
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_int_equal(xr_nameserver_publish(names, &client, &u), XR_EXISTS_ALREADY);
    xr_packer_free(&p);
    for (uint32_t range = XR_RANGE_ALL; range <= XR_RANGE_PROCESS; range++) {
        for (int twice = 0; twice < 2; twice++) {
            publish(&p, range, "a");
            u = (struct xr_unpacker){p.data, p.len, p.failed};
            assert_int_equal(xr_nameserver_publish(names, &client, &u), twice ? XR_EXISTS_ALREADY : XR_DONE);
            u = (struct xr_unpacker){p.data, p.len, p.failed};
            if (range == XR_RANGE_HOST || range == XR_RANGE_PROCESS) /* another host, or process */
                assert_int_equal(xr_nameserver_publish(names, &other, &u), twice ? XR_EXISTS_ALREADY : XR_DONE);
            xr_packer_free(&p);
        }
    }
    for (int twice = 0; twice < 2; twice++) { /* of one range only */
        xr_pack_u32(&p, XR_RANGE_JOB);
        xr_pack_strings(&p, (char *[]){(char *)(uintptr_t) "a", NULL});
        u = (struct xr_unpacker){p.data, p.len, p.failed};
        assert_int_equal(xr_nameserver_unpublish(names, &client, &u), twice ? XR_NOT_FOUND : XR_DONE);
        xr_packer_free(&p);
    }
    xr_pack_u32(&p, XR_RANGE_ANY);
    xr_pack_strings(&p, (char *[]){(char *)(uintptr_t) "a", NULL});
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_int_equal(xr_nameserver_unpublish(names, &client, &u), XR_DONE);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_int_equal(xr_nameserver_unpublish(names, &client, &u), XR_NOT_FOUND);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    assert_int_equal(xr_nameserver_unpublish(names, &other, &u), XR_DONE); /* its own two are left */
    xr_packer_free(&p);
    xr_nameserver_close(names);
    event_base_free(base);
}

static enum xr_rpc_status expected_answer;

static void on_sized(void *arg, const struct xr_rpc_origin *asker, enum xr_rpc_status status, struct xr_packer *found)
{
    (void)arg;
    (void)asker;
    assert_int_equal(status, expected_answer);
    assert_true(found->len <= XR_MESSAGE_MAX / 2);
    xr_packer_free(found);
}

static void look_up(struct xr_nameserver *names, char **keys, enum xr_rpc_status status)
{
    const struct xr_process client = {.job = 1, .rank = 2, .id = "job", .host = "host"};
    struct xr_packer p = {0};
    struct xr_unpacker u;

    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_NOW);
    xr_pack_u32(&p, 0);
    xr_pack_strings(&p, keys);
    u = (struct xr_unpacker){p.data, p.len, p.failed};
    expected_answer = status;
    xr_nameserver_lookup(names, &client, &u, &(struct xr_rpc_origin){.job = 3});
    xr_packer_free(&p);
}

/* An answer that no message holds is refused, and what is for one reader is still there after that. */
static void large_answers(void **state)
{
    enum { BYTES = XR_MESSAGE_MAX / 4 + 4096 };
    const struct xr_process client = {.job = 1, .rank = 1, .id = "job", .host = "host"};
    char *both[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b", NULL}, *one[] = {both[0], NULL};
    struct event_base *base = event_base_new();
    char *value = calloc(1, BYTES);
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct xr_nameserver *names;

    (void)state;
    assert_true(base && value);
    assert_int_equal(xr_nameserver_open(base, on_sized, NULL, &names), RANK_OK);
    for (int i = 0; i < 2; i++) {
        xr_pack_u32(&p, XR_RANGE_ALL);
        xr_pack_u32(&p, XR_KEEP_ONE_READ);
        xr_pack_u32(&p, 1);
        xr_pack_string(&p, both[i]);
        xr_pack_bytes(&p, value, BYTES);
        u = (struct xr_unpacker){p.data, p.len, p.failed};
        assert_int_equal(xr_nameserver_publish(names, &client, &u), XR_DONE);
        xr_packer_free(&p);
    }
    look_up(names, both, XR_NO_ROOM);
    look_up(names, one, XR_DONE);
    look_up(names, one, XR_NOT_FOUND);
    look_up(names, both + 1, XR_DONE);
    xr_nameserver_close(names);
    event_base_free(base);
    free(value);
}

/* The number of waiting lookups is bounded; one that ends makes room for another. */
static void waiting_limit(void **state)
{
    enum { LIMIT = 10000 };
    enum xr_rpc_status expected = XR_NO_ROOM;
    struct event_base *base = event_base_new();
    struct xr_packer p = {0};
    struct xr_nameserver *names;

    (void)state;
    assert_non_null(base);
    assert_int_equal(xr_nameserver_open(base, on_found, &expected, &names), RANK_OK);
    xr_pack_u32(&p, XR_RANGE_ALL);
    xr_pack_u32(&p, XR_LOOKUP_ALL);
    xr_pack_u32(&p, 0);
    xr_pack_strings(&p, (char *[]){(char *)(uintptr_t) "never", NULL});
    for (uint32_t i = 0; i < LIMIT + 2; i++) { /* the last but one is refused, the last is not */
        struct xr_process process = {.job = 1, .rank = i, .id = "job", .host = "host"};
        struct xr_unpacker u = {p.data, p.len, p.failed};
        if (i == LIMIT + 1) {
            expected = XR_PARTICIPANT_LOST;
            xr_nameserver_ended(names, 1, 7, true);
        }
        xr_nameserver_lookup(names, &process, &u, &(struct xr_rpc_origin){.job = 2});
    }
    xr_packer_free(&p);
    xr_nameserver_close(names);
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowd),
        cmocka_unit_test(waiting_limit),
        cmocka_unit_test(ranges),
        cmocka_unit_test(large_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
