/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_pattern_test.c: check trees, rings and doublings for sizes from 1 to 64. */
#include "tests/unit/unit.h"

#include "collectives/pattern.h"

enum { MAX = 64 };

static uint64_t all_of(int n)
{
    return n == 64 ? ~0ull : (1ull << n) - 1;
}

static void logarithms(void **state)
{
    (void)state;
    for (int n = 1; n <= 5000; n++) {
        int k = rk_log2_ceil(n), p = rk_pow2_floor(n);
        assert_true(1 << k >= n && (k == 0 || 1 << (k - 1) < n));
        assert_true(p <= n && 2 * p > n && rk_is_pow2(p));
    }
    assert_int_equal(rk_log2_ceil(INT32_MAX), 31);
    assert_int_equal(rk_pow2_floor(INT32_MAX), 1 << 30);
}

static void virtual_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        for (int root = 0; root < n; root++) {
            assert_int_equal(rk_virtual(root, root, n), 0);
            for (int r = 0; r < n; r++) {
                int v = rk_virtual(r, root, n);
                assert_true(v >= 0 && v < n);
                assert_int_equal(rk_real(v, root, n), r);
            }
        }
    }
}

static void parts(void **state)
{
    (void)state;
    for (int64_t count = 0; count < 200; count++) {
        for (int n = 1; n <= MAX; n++) {
            int64_t at = 0;
            for (int i = 0; i < n; i++) {
                assert_int_equal(rk_part_at(count, n, i), at);
                assert_true(rk_part_len(count, n, i) >= count / n);
                assert_true(rk_part_len(count, n, i) <= (count + n - 1) / n);
                at += rk_part_len(count, n, i);
            }
            assert_int_equal(at, count);
            assert_int_equal(rk_part_at(count, n, n), count);
        }
    }
}

/* Places: a permutation, with ranks counted up to each. */
static void places(void **state)
{
    (void)state;
    for (int n = 1; n <= 4 * MAX; n++) {
        int pow2 = rk_pow2_floor(n), at = 0;

        for (int i = 0; i < pow2; i++) {
            int first, members;

            assert_int_equal(rk_place(rk_place(i, pow2), pow2), i);
            assert_int_equal(rk_place_first(i, n), at);
            rk_fold_members(rk_place(i, pow2), n, &first, &members);
            at += members;
        }
        assert_int_equal(at, n);
        assert_int_equal(rk_place_first(pow2, n), n);
    }
}

static void trees(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        int depth[MAX], deepest = 0, limit = 0;

        for (int64_t w = 1; w < n; w *= 2)
            limit++;
        for (int v = 0; v < n; v++) {
            struct rk_tree t, up;
            int next = v + 1;

            rk_tree_binomial(v, n, &t);
            if (v == 0) {
                assert_int_equal(t.parent, -1);
                assert_int_equal(t.span, n);
                depth[v] = 0;
            } else {
                bool found = false;
                assert_true(t.parent >= 0 && t.parent < v);
                rk_tree_binomial(t.parent, n, &up);
                for (int i = 0; i < up.children; i++)
                    found = found || (up.child[i] == v && up.child_span[i] == t.span);
                assert_true(found);
                depth[v] = depth[t.parent] + 1;
                deepest = depth[v] > deepest ? depth[v] : deepest;
            }
            for (int i = 0; i < t.children; i++) { /* they divide what is behind v */
                assert_int_equal(t.child[i], next);
                next += t.child_span[i];
            }
            assert_int_equal(next, v + t.span);
        }
        assert_true(deepest <= limit);
    }
}

static void trees_are_large(void **state)
{
    struct rk_tree t;

    (void)state;
    /* No overflow, and the arrays are long enough. */
    rk_tree_binomial(0, INT32_MAX, &t);
    assert_int_equal(t.span, INT32_MAX);
    assert_true(t.children <= RK_TREE_MAX_CHILDREN);
    rk_tree_binomial(INT32_MAX - 1, INT32_MAX, &t);
    assert_int_equal(t.span, 1);
}

static void dissemination(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        uint64_t know[MAX], then[MAX];

        for (int r = 0; r < n; r++)
            know[r] = 1ull << r;
        for (int k = 0; k < rk_log2_ceil(n); k++) {
            for (int r = 0; r < n; r++) {
                int to, from, to2, from2;
                rk_dissemination(r, n, k, &to, &from);
                rk_dissemination(to, n, k, &to2, &from2);
                assert_int_equal(from2, r);
                then[r] = know[r] | know[from];
            }
            memcpy(know, then, sizeof(know));
        }
        for (int r = 0; r < n; r++)
            assert_true(know[r] == all_of(n));
    }
}

static void folding(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        int pow2 = rk_pow2_floor(n), next = 0;
        uint64_t seen = 0;

        for (int r = 0; r < n; r++) {
            struct rk_fold f = rk_fold(r, n);
            assert_int_equal(f.pow2, pow2);
            assert_int_equal(f.rest, n - pow2);
            if (f.vrank >= 0) {
                assert_int_equal(rk_unfold(f.vrank, n), r);
                seen |= 1ull << f.vrank;
            } else {
                assert_true(rk_fold(f.partner, n).vrank >= 0);
            }
            if (f.partner >= 0)
                assert_int_equal(rk_fold(f.partner, n).partner, r);
        }
        assert_true(seen == all_of(pow2));
        for (int v = 0; v < pow2; v++) { /* members are all ranks, in order */
            int first, count;
            rk_fold_members(v, n, &first, &count);
            assert_int_equal(first, next);
            assert_true(rk_unfold(v, n) >= first && rk_unfold(v, n) < first + count);
            next += count;
        }
        assert_int_equal(next, n);
    }
}

static void halving(void **state)
{
    (void)state;
    for (int p = 1; p <= MAX; p *= 2) {
        uint64_t sum[MAX][MAX]; /* the ranks that rank v has summed up part i of */

        for (int v = 0; v < p; v++) {
            for (int i = 0; i < p; i++)
                sum[v][i] = 1ull << v;
        }
        for (int k = 0; k < rk_log2_ceil(p); k++) {
            uint64_t then[MAX][MAX];
            memcpy(then, sum, sizeof(sum));
            for (int v = 0; v < p; v++) {
                struct rk_halving h = rk_halving(v, p, k), o = rk_halving(h.peer, p, k);
                assert_int_equal(o.peer, v);
                assert_int_equal(o.keep, h.give);
                assert_int_equal(o.give, h.keep);
                assert_true(v >= h.keep && v < h.keep + h.half);
                for (int i = h.keep; i < h.keep + h.half; i++) {
                    assert_true((sum[v][i] & sum[h.peer][i]) == 0); /* no rank counts twice */
                    then[v][i] = sum[v][i] | sum[h.peer][i];
                }
            }
            memcpy(sum, then, sizeof(sum));
        }
        for (int v = 0; v < p; v++)
            assert_true(sum[v][v] == all_of(p));
    }
}

static void rings(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        uint64_t sum[MAX][MAX], held[MAX];

        for (int r = 0; r < n; r++) {
            held[r] = 1ull << r;
            for (int i = 0; i < n; i++)
                sum[r][i] = 1ull << r;
        }
        for (int s = 0; s < n - 1; s++) {
            uint64_t moved[MAX];
            for (int r = 0; r < n; r++)
                moved[r] = sum[r][rk_ring_reduce_send(r, n, s)];
            for (int r = 0; r < n; r++) {
                int left = rk_ring(r, -1, n), part = rk_ring_reduce_send(left, n, s);
                assert_true((sum[r][part] & moved[left]) == 0);
                sum[r][part] |= moved[left];
            }
            for (int r = 0; r < n; r++) {
                int part = rk_ring_gather_send(r, n, s);
                assert_true(held[r] >> part & 1); /* sends what it has */
                moved[r] = 1ull << part;
            }
            for (int r = 0; r < n; r++) {
                uint64_t in = moved[rk_ring(r, -1, n)];
                assert_true((held[r] & in) == 0);
                held[r] |= in;
            }
        }
        for (int r = 0; r < n; r++) {
            assert_true(sum[r][r] == all_of(n));
            assert_true(held[r] == all_of(n));
        }
    }
}

static void bruck_gather(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        int have[MAX];

        for (int r = 0; r < n; r++)
            have[r] = 1; /* blocks r, r + 1, ... */
        for (int k = 0; k < rk_log2_ceil(n); k++) {
            for (int r = 0; r < n; r++) {
                int to, from, count, to2, from2, count2;
                rk_bruck_gather(r, n, k, &to, &from, &count);
                rk_bruck_gather(from, n, k, &to2, &from2, &count2);
                assert_int_equal(to2, r);
                assert_int_equal(count2, count);
                assert_true(count <= 1 << k);                       /* what the other has */
                assert_int_equal(from, rk_ring(r, have[r], n));     /* follows on mine */
                have[r] += count;
            }
        }
        for (int r = 0; r < n; r++)
            assert_int_equal(have[r], n);
    }
}

static void bruck_alltoall(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        for (int i = 0; i < n; i++) { /* block i travels i ranks */
            int way = 0;
            for (int k = 0; 1 << k < n; k++)
                way += rk_bruck_moves(i, k) ? 1 << k : 0;
            assert_int_equal(way, i);
        }
    }
}

static void pairs(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX; n++) {
        for (int r = 0; r < n; r++) {
            uint64_t to_seen = 1ull << r, from_seen = 1ull << r;
            for (int s = 1; s < n; s++) {
                int to, from, to2, from2;
                rk_pairwise(r, n, s, &to, &from);
                rk_pairwise(to, n, s, &to2, &from2);
                assert_int_equal(from2, r);
                to_seen |= 1ull << to;
                from_seen |= 1ull << from;
                if (rk_is_pow2(n))
                    assert_int_equal(to, from);
            }
            assert_true(to_seen == all_of(n) && from_seen == all_of(n));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms),    cmocka_unit_test(virtual_ranks),
        cmocka_unit_test(places), cmocka_unit_test(parts),         cmocka_unit_test(trees),
        cmocka_unit_test(trees_are_large), cmocka_unit_test(dissemination),
        cmocka_unit_test(folding),       cmocka_unit_test(halving),
        cmocka_unit_test(rings),         cmocka_unit_test(bruck_gather),
        cmocka_unit_test(bruck_alltoall), cmocka_unit_test(pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
