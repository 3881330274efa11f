/* SPDX-License-Identifier: BSD-3-Clause */
/* machine_pack_test.c: send machines whole, and refuse damaged ones. */
#include "launcher/job/machine_pack.h"
#include "lib/topo/pair.h"
#include "tests/unit/machine_xml.h"

#include <time.h>

static void same_devices(const struct rk_device *a, const struct rk_device *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_string_equal(a[i].netdev, b[i].netdev);
        assert_string_equal(a[i].uuid, b[i].uuid);
        assert_string_equal(a[i].pci, b[i].pci);
        assert_int_equal(a[i].near.first, b[i].near.first);
        assert_int_equal(a[i].near.n, b[i].near.n);
        assert_int_equal(a[i].bridge, b[i].bridge);
        assert_int_equal(a[i].nvidia, b[i].nvidia);
        assert_int_equal(a[i].kind, b[i].kind);
        assert_int_equal(rk_nic_rate(&a[i]), rk_nic_rate(&b[i]));
    }
}

static void same_pairs(const struct rk_machine *a, const struct rk_machine *b)
{
    struct rk_pair_request rq = {.ranks = 7, .nics = {.per_rank = a->nnics > 1 ? 2 : 0}};
    struct rk_pairing p, q;
    char err[256];

    assert_int_equal(rk_pair(a, &rq, &p, err, sizeof(err)), RANK_OK);
    assert_int_equal(rk_pair(b, &rq, &q, err, sizeof(err)), RANK_OK);
    for (uint32_t r = 0; r < rq.ranks; r++) {
        assert_int_equal(p.rank[r].ngpus, q.rank[r].ngpus);
        assert_int_equal(p.rank[r].ncores, q.rank[r].ncores);
        assert_memory_equal(p.rank[r].core, q.rank[r].core, p.rank[r].ncores * sizeof(*p.rank[r].core));
        for (uint32_t i = 0; i < p.rank[r].ngpus; i++)
            assert_memory_equal(&p.rank[r].gpu[i], &q.rank[r].gpu[i], sizeof(p.rank[r].gpu[i]));
        for (uint32_t i = 0; i < p.rank[r].nnics; i++)
            assert_memory_equal(&p.rank[r].nic[i], &q.rank[r].nic[i], sizeof(p.rank[r].nic[i]));
    }
    rk_pair_free(&p);
    rk_pair_free(&q);
}

/* Pair on a machine that was accepted: no index leads outside. */
static void use_machine(const struct rk_machine *m)
{
    struct rk_pair_request rq = {.ranks = 3};
    struct rk_pairing p;
    char err[256];

    if (rk_pair(m, &rq, &p, err, sizeof(err)) == RANK_OK)
        rk_pair_free(&p);
}

static void damage(const struct xr_packer *whole, unsigned *seed)
{
    uint8_t *data = malloc(whole->len);

    assert_non_null(data);
    for (int i = 0; i < 300; i++) {
        struct rk_machine m;
        struct xr_unpacker u = {data, whole->len, false};
        memcpy(data, whole->data, whole->len);
        if (i % 3 == 0)
            u.left = (size_t)rand_r(seed) % whole->len;
        for (int k = i % 3; k > 0; k--)
            data[(size_t)rand_r(seed) % whole->len] = i % 2 ? 0xff : (uint8_t)rand_r(seed);
        if (xr_machine_unpack(&u, &m) == RANK_OK) {
            assert_int_not_equal(i % 3, 0); /* nothing is missing */
            use_machine(&m);
        }
        rk_machine_free(&m);
    }
    free(data);
}

static void send_machine(struct rk_machine *m, unsigned *seed)
{
    struct xr_packer p = {0};
    struct xr_unpacker u;
    struct rk_machine there;

    xr_machine_pack(m, &p);
    assert_false(p.failed);
    u = (struct xr_unpacker){p.data, p.len, false};
    assert_int_equal(xr_machine_unpack(&u, &there), RANK_OK);
    assert_int_equal(m->ngpus, there.ngpus);
    assert_int_equal(m->nnics, there.nnics);
    same_devices(m->gpu, there.gpu, m->ngpus);
    same_devices(m->nic, there.nic, m->nnics);
    same_pairs(m, &there);
    rk_machine_free(&there);
    damage(&p, seed);
    xr_packer_free(&p);
    rk_machine_free(m);
}

static void machines(void **state)
{
    static const char *const recorded[] = {"coral-lassen", "epyc-corona", "g4dnmetal", "cts1-pascal"};
    static const char *const lines[] = {"[" SWITCH("(G)(M)(((M)))") "(M)][(A)]", "[(M)]", "[(E)(S)]"};
    unsigned seed = (unsigned)time(NULL);
    struct rk_machine m;

    (void)state;
    printf("# seed %u\n", seed);
    for (size_t i = 0; i < sizeof(recorded) / sizeof(*recorded); i++) {
        recorded_machine(&m, recorded[i]);
        send_machine(&m, &seed);
    }
    make_machine(&m, 1, 3, 2, lines);
    send_machine(&m, &seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(machines)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
