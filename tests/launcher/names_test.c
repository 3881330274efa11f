/*
 * names_test.c: what processes publish and look up: many of them, of each range, and
 * answers of any size.
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

static void publish(struct rk_packer *p, uint32_t range, const char *key)
{
    rk_pack_u32(p, range);
    rk_pack_u32(p, RK_KEEP_PROCESS);
    rk_pack_u32(p, 1);
    rk_pack_string(p, key);
    rk_pack_bytes(p, key, strlen(key));
}

static unsigned nfound;

static void on_found(void *arg, const struct rk_asker *asker, enum rk_errand_status status, struct rk_packer *found)
{
    struct rk_unpacker u = {found->data, found->len, found->failed};

    assert_int_equal(status, *(enum rk_errand_status *)arg);
    if (status == RK_DONE) {
        assert_int_equal(rk_unpack_u32(&u), asker->job);
        nfound++;
    }
    rk_packer_free(found);
}

/* 20,000 who publish, under names of their own and all under one, and as many who wait: each costs what it costs, however
 * many there are. Walking along lists, as once, takes minutes. */
static void crowd(void **state)
{
    enum { N = 20000 };
    enum rk_errand_status expected = RK_DONE;
    struct event_base *base = event_base_new();
    struct rk_packer p = {0};
    struct rk_unpacker u;
    struct rk_names *names;
    char key[32];

    (void)state;
    assert_non_null(base);
    assert_int_equal(rk_names_open(base, on_found, &expected, &names), RANK_OK);
    nfound = 0;
    for (uint32_t phase = 0; phase < 3; phase++) {
        for (uint32_t i = 0; i < N; i++) {
            struct rk_names_who who = {.job = 1, .rank = i, .id = "job", .host = "host"};
            const struct rk_asker asker = {.job = 2};
            snprintf(key, sizeof(key), "port of %u", i);
            if (phase == 0) { /* waits for the next one's, and for its own that all call the same */
                char *keys[] = {key, (char *)(uintptr_t) "port", NULL};
                snprintf(key, sizeof(key), "port of %u", (i + 1) % N);
                rk_pack_u32(&p, RK_RANGE_ALL);
                rk_pack_u32(&p, RK_LOOKUP_ALL);
                rk_pack_u32(&p, 0);
                rk_pack_strings(&p, keys);
                u = (struct rk_unpacker){p.data, p.len, p.failed};
                rk_names_look_up(names, &who, &u, &asker);
            } else {
                publish(&p, phase == 1 ? RK_RANGE_ALL : RK_RANGE_PROCESS, phase == 1 ? key : "port");
                u = (struct rk_unpacker){p.data, p.len, p.failed};
                assert_int_equal(rk_names_publish(names, &who, &u), RK_DONE);
                if (phase == 2)
                    assert_int_equal(nfound, i + 1);
            }
            rk_packer_free(&p);
            if (phase == 2 && i >= N / 2)
                rk_names_ended(names, 1, i, false);
        }
    }
    rk_names_app_ended(names, 1, RK_ALL_RANKS);
    expected = RK_NOT_FOUND;
    rk_pack_u32(&p, RK_RANGE_ALL);
    rk_pack_u32(&p, RK_LOOKUP_NOW);
    rk_pack_u32(&p, 0);
    rk_pack_strings(&p, (char *[]){(char *)(uintptr_t) "port of 7", NULL});
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    rk_names_look_up(names, &(struct rk_names_who){.job = 1, .id = "job", .host = "host"}, &u, &(struct rk_asker){0});
    rk_packer_free(&p);
    rk_names_close(names);
    event_base_free(base);
}

/* All that is published at once is there or nothing is; and what is for fewer is seen before what is for all. */
static void ranges(void **state)
{
    const struct rk_names_who who = {.job = 1, .rank = 1, .id = "job", .host = "host"};
    const struct rk_names_who other = {.job = 1, .rank = 2, .id = "job", .host = "elsewhere"};
    enum rk_errand_status expected = RK_NOT_FOUND;
    struct event_base *base = event_base_new();
    struct rk_packer p = {0};
    struct rk_unpacker u;
    struct rk_names *names;

    (void)state;
    assert_non_null(base);
    assert_int_equal(rk_names_open(base, on_found, &expected, &names), RANK_OK);
    rk_pack_u32(&p, RK_RANGE_ALL);
    rk_pack_u32(&p, RK_KEEP_APP);
    rk_pack_u32(&p, 3);
    for (int i = 0; i < 3; i++) { /* the third is the first again */
        rk_pack_string(&p, i % 2 ? "b" : "a");
        rk_pack_bytes(&p, "x", 1);
    }
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    assert_int_equal(rk_names_publish(names, &who, &u), RK_THERE_ALREADY);
    rk_packer_free(&p);
    for (uint32_t range = RK_RANGE_ALL; range <= RK_RANGE_PROCESS; range++) {
        for (int twice = 0; twice < 2; twice++) {
            publish(&p, range, "a");
            u = (struct rk_unpacker){p.data, p.len, p.failed};
            assert_int_equal(rk_names_publish(names, &who, &u), twice ? RK_THERE_ALREADY : RK_DONE);
            u = (struct rk_unpacker){p.data, p.len, p.failed};
            if (range == RK_RANGE_HOST || range == RK_RANGE_PROCESS) /* another host, or process */
                assert_int_equal(rk_names_publish(names, &other, &u), twice ? RK_THERE_ALREADY : RK_DONE);
            rk_packer_free(&p);
        }
    }
    for (int twice = 0; twice < 2; twice++) { /* of one range only */
        rk_pack_u32(&p, RK_RANGE_JOB);
        rk_pack_strings(&p, (char *[]){(char *)(uintptr_t) "a", NULL});
        u = (struct rk_unpacker){p.data, p.len, p.failed};
        assert_int_equal(rk_names_unpublish(names, &who, &u), twice ? RK_NOT_FOUND : RK_DONE);
        rk_packer_free(&p);
    }
    rk_pack_u32(&p, RK_RANGE_ANY);
    rk_pack_strings(&p, (char *[]){(char *)(uintptr_t) "a", NULL});
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    assert_int_equal(rk_names_unpublish(names, &who, &u), RK_DONE);
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    assert_int_equal(rk_names_unpublish(names, &who, &u), RK_NOT_FOUND);
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    assert_int_equal(rk_names_unpublish(names, &other, &u), RK_DONE); /* its own two are left */
    rk_packer_free(&p);
    rk_names_close(names);
    event_base_free(base);
}

static enum rk_errand_status expected_answer;

static void on_sized(void *arg, const struct rk_asker *asker, enum rk_errand_status status, struct rk_packer *found)
{
    (void)arg;
    (void)asker;
    assert_int_equal(status, expected_answer);
    assert_true(found->len <= RK_MESSAGE_MAX / 2);
    rk_packer_free(found);
}

static void look_up(struct rk_names *names, char **keys, enum rk_errand_status status)
{
    const struct rk_names_who who = {.job = 1, .rank = 2, .id = "job", .host = "host"};
    struct rk_packer p = {0};
    struct rk_unpacker u;

    rk_pack_u32(&p, RK_RANGE_ALL);
    rk_pack_u32(&p, RK_LOOKUP_NOW);
    rk_pack_u32(&p, 0);
    rk_pack_strings(&p, keys);
    u = (struct rk_unpacker){p.data, p.len, p.failed};
    expected_answer = status;
    rk_names_look_up(names, &who, &u, &(struct rk_asker){.job = 3});
    rk_packer_free(&p);
}

/* An answer that no message holds is refused, and what is for one reader is still there after that. */
static void large_answers(void **state)
{
    enum { BYTES = RK_MESSAGE_MAX / 4 + 4096 };
    const struct rk_names_who who = {.job = 1, .rank = 1, .id = "job", .host = "host"};
    char *both[] = {(char *)(uintptr_t) "a", (char *)(uintptr_t) "b", NULL}, *one[] = {both[0], NULL};
    struct event_base *base = event_base_new();
    char *value = calloc(1, BYTES);
    struct rk_packer p = {0};
    struct rk_unpacker u;
    struct rk_names *names;

    (void)state;
    assert_true(base && value);
    assert_int_equal(rk_names_open(base, on_sized, NULL, &names), RANK_OK);
    for (int i = 0; i < 2; i++) {
        rk_pack_u32(&p, RK_RANGE_ALL);
        rk_pack_u32(&p, RK_KEEP_ONE_READ);
        rk_pack_u32(&p, 1);
        rk_pack_string(&p, both[i]);
        rk_pack_bytes(&p, value, BYTES);
        u = (struct rk_unpacker){p.data, p.len, p.failed};
        assert_int_equal(rk_names_publish(names, &who, &u), RK_DONE);
        rk_packer_free(&p);
    }
    look_up(names, both, RK_NO_ROOM);
    look_up(names, one, RK_DONE);
    look_up(names, one, RK_NOT_FOUND);
    look_up(names, both + 1, RK_DONE);
    rk_names_close(names);
    event_base_free(base);
    free(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowd),
        cmocka_unit_test(ranges),
        cmocka_unit_test(large_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
