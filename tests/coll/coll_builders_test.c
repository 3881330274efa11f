/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_builders_test.c: run the schedules of every algorithm in one process.
 * For every size from 2 to 64: right results, messages in any order, and no circle of waiting, also where each
 * send waits for its receive. (Teams of one never get a schedule.) Sanitizer builds run a seventh of the sizes above 16.
 */
#include "tests/unit/unit.h"

#include "collectives/segments.h"
#include "collectives/average.h"
#include "collectives/hosts.h"
#include "collectives/pattern.h"
#include "lib/data/dtype.h"
#include "tests/coll/fake_p2p.h"
#include "tests/coll/reference_values.h"

struct ranks {
    struct fake_world w;
    struct rank_request req[FAKE_MAX];
    struct rk_coll_call call[FAKE_MAX];
    char *in[FAKE_MAX], *out[FAKE_MAX], *keep[FAKE_MAX]; /* keep: the input as it was */
    int64_t *rcounts, *displs; /* of blocks of their own lengths, at root */
    struct rk_hosts *hosts[FAKE_MAX];
    struct pairs {
        int64_t scounts[FAKE_MAX], sdispls[FAKE_MAX], rcounts[FAKE_MAX], rdispls[FAKE_MAX];
    } pairs[FAKE_MAX];         /* of each rank */
    size_t room;               /* of each buffer */
    char *blank;               /* an output that is untouched */
};

static uint64_t node_of[FAKE_MAX]; /* the host of each rank, for algorithms that need it */

/* The size after this one. */
static int next_size(int size)
{
    size++;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    while (size > 16 && size < FAKE_MAX && size % 7 != 0 && !rk_is_pow2(size))
        size++;
#endif
    return size;
}

static bool reduces(enum rk_coll_kind k)
{
    return k == RK_COLL_REDUCE || k == RK_COLL_ALLREDUCE || k == RK_COLL_REDUCE_SCATTER ||
           k == RK_COLL_REDUCE_SCATTERV || k == RK_COLL_SCAN || k == RK_COLL_EXSCAN;
}

static bool is_scan(enum rk_coll_kind k)
{
    return k == RK_COLL_SCAN || k == RK_COLL_EXSCAN;
}

/* What rank r gives of block b. */
static unsigned char byte_of(int r, int b, size_t i)
{
    return (unsigned char)(r * 31 + b * 7 + (int)(i % 251) * 3 + 1);
}

static void fill_block(char *to, int r, int b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)byte_of(r, b, i);
}

static void fill_blocks(char *to, int r, int blocks, size_t bytes)
{
    for (int b = 0; b < blocks; b++)
        fill_block(to + (size_t)b * bytes, r, b, bytes);
}

static void check_block(const char *at, int r, int b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)at[i] != byte_of(r, b, i)) /* an assertion each would take longer than the schedules */
            fail_msg("byte %zu of %zu, of rank %d for rank %d, is %#x, not %#x", i, bytes, r, b, (unsigned char)at[i], byte_of(r, b, i));
    }
}

/* Blocks of the longest buffer of a call; those of their own lengths may take four times as much. */
static int most_blocks(enum rk_coll_kind kind, int size)
{
    switch (kind) {
    case RK_COLL_BARRIER:
    case RK_COLL_BCAST:
    case RK_COLL_REDUCE:
    case RK_COLL_ALLREDUCE:
    case RK_COLL_SCAN:
    case RK_COLL_EXSCAN:
        return 1;
    default:
        return rk_coll_has_counts(kind) ? 4 * size : size;
    }
}

/* Length of rank r's block where each has its own. */
static int64_t v_count(int64_t count, int r)
{
    return r % 3 == 1 ? 0 : count * (r % 4 + 1);
}

/* Length of the block from one rank to another; in place the same both ways. */
static int64_t pair_count(int64_t count, int from, int to, bool in_place)
{
    return v_count(count, from + (in_place ? to : 2 * to));
}

static void prepare_pairs(struct ranks *x, int r, int64_t count, bool in_place)
{
    struct rk_coll_call *c = &x->call[r];
    struct pairs *p = &x->pairs[r];
    int64_t s_at = 0, r_at = 0;

    for (int o = 0; o < x->w.size; o++) {
        p->scounts[o] = pair_count(count, r, o, in_place);
        p->rcounts[o] = pair_count(count, o, r, in_place);
        p->sdispls[o] = s_at;
        p->rdispls[o] = r_at;
        s_at += p->scounts[o];
        r_at += p->rcounts[o];
        fill_block(x->in[r] + (size_t)p->sdispls[o] * c->elem, r, o, (size_t)p->scounts[o] * c->elem);
    }
    c->count = 0;
    c->bytes = 0;
    c->scounts = p->scounts;
    c->sdispls = p->sdispls;
    c->rcounts = p->rcounts;
    c->rdispls = p->rdispls;
}

static void prepare(struct ranks *x, const struct rk_algo *algo, int r, int64_t count,
                    rank_dtype_t d, rank_op_t op, int root, bool in_place)
{
    int size = x->w.size;
    size_t elem = value_size(d), bytes = (size_t)count * elem, room = bytes * (size_t)most_blocks(algo->kind, size);
    struct rk_coll_call *c = &x->call[r];
    bool scatters = algo->kind == RK_COLL_SCATTERV, lists = rk_coll_has_counts(algo->kind);
    bool knows = lists && (!rk_coll_has_own_counts(algo->kind) || r == root);
    int64_t own = rk_coll_has_own_counts(algo->kind) ? x->rcounts[r] : count, total = count;

    x->room = room;
    if (!x->blank) {
        x->blank = malloc(room);
        memset(x->blank, 0x6b, room);
    }
    x->in[r] = calloc(1, room);
    x->out[r] = malloc(room);
    x->keep[r] = malloc(room);
    memset(x->out[r], 0x6b, room);
    *c = (struct rk_coll_call){.team = &x->w.team[r], .kind = algo->kind, .count = own,
                               .bytes = (size_t)own * elem, .elem = elem, .dtype = d, .op = op,
                               .fn = rk_op_kernel(op, d), .root = root, .in_place = in_place};
    if (knows && scatters)
        c->scounts = x->rcounts, c->sdispls = x->displs;
    else if (knows)
        c->rcounts = x->rcounts, c->rdispls = x->displs;
    if (algo->kind == RK_COLL_REDUCE_SCATTER)
        total = count * size;
    if (algo->kind == RK_COLL_REDUCE_SCATTERV) {
        total = x->displs[size - 1] + x->rcounts[size - 1];
        c->rdispls = NULL; /* it has none */
        for (int q = 0; q < size; q++)
            c->count = x->rcounts[q] > c->count ? x->rcounts[q] : c->count;
        c->bytes = (size_t)c->count * elem;
    }
    if (reduces(algo->kind)) {
        value_fill(x->in[r], d, op, r, size, 0, total);
    } else if (algo->kind == RK_COLL_ALLTOALLV) {
        prepare_pairs(x, r, count, in_place);
    } else if (scatters) {
        for (int b = 0; b < size && r == root; b++)
            fill_block(x->in[r] + (size_t)x->displs[b] * elem, r, b, (size_t)x->rcounts[b] * elem);
    } else if (lists) {
        fill_block(x->in[r], r, 0, (size_t)x->rcounts[r] * elem);
    } else {
        fill_blocks(x->in[r], r, most_blocks(algo->kind, size), bytes);
    }
    memcpy(x->keep[r], x->in[r], room);
    c->sbuf = x->in[r];
    c->rbuf = x->out[r];
    switch (algo->kind) {
    case RK_COLL_BCAST:
        c->sbuf = c->rbuf = r == root ? x->in[r] : x->out[r];
        break;
    case RK_COLL_REDUCE:
    case RK_COLL_GATHER:
    case RK_COLL_GATHERV:
        if (r != root) {
            c->rbuf = NULL;
            c->in_place = false;
        } else if (in_place) {
            size_t at = algo->kind == RK_COLL_REDUCE ? 0 : lists ? (size_t)x->displs[r] * elem : (size_t)root * bytes;
            memcpy(x->out[r] + at, x->in[r], c->bytes);
            c->sbuf = x->out[r] + at;
        }
        break;
    case RK_COLL_SCATTER:
    case RK_COLL_SCATTERV:
        if (r != root)
            c->sbuf = NULL;
        else if (in_place)
            c->rbuf = x->in[r] + (lists ? (size_t)x->displs[r] * elem : (size_t)root * bytes);
        break;
    case RK_COLL_ALLGATHER:
    case RK_COLL_ALLGATHERV:
        if (in_place) {
            size_t at = algo->kind == RK_COLL_ALLGATHER ? (size_t)r * bytes
                                                        : (size_t)x->displs[r] * elem;
            memcpy(x->out[r] + at, x->in[r],
                   algo->kind == RK_COLL_ALLGATHER ? bytes : (size_t)x->rcounts[r] * elem);
            c->sbuf = x->out[r] + at;
        }
        break;
    default:
        if (in_place) {
            memcpy(x->out[r], x->in[r], room);
            c->sbuf = x->out[r];
        }
        break;
    }
}

static void check(struct ranks *x, int r, rank_op_t op, bool in_place)
{
    const struct rk_coll_call *c = &x->call[r];
    int size = x->w.size;

    switch (c->kind) {
    case RK_COLL_BCAST:
        check_block(c->rbuf, c->root, 0, c->bytes);
        break;
    case RK_COLL_REDUCE:
        if (r == c->root)
            assert_int_equal(value_check(c->rbuf, c->dtype, op, size, 0, c->count), -1);
        break;
    case RK_COLL_ALLREDUCE:
        assert_int_equal(value_check(c->rbuf, c->dtype, op, size, 0, c->count), -1);
        break;
    case RK_COLL_REDUCE_SCATTER:
        assert_int_equal(value_check(c->rbuf, c->dtype, op, size, c->count * r, c->count), -1);
        break;
    case RK_COLL_GATHER:
        for (int s = 0; s < size && r == c->root; s++)
            check_block(c->rbuf + (size_t)s * c->bytes, s, 0, c->bytes);
        break;
    case RK_COLL_SCATTER:
        check_block(c->rbuf, c->root, r, c->bytes);
        break;
    case RK_COLL_ALLGATHER:
        for (int s = 0; s < size; s++)
            check_block(c->rbuf + (size_t)s * c->bytes, s, 0, c->bytes);
        break;
    case RK_COLL_SCATTERV:
        check_block(c->rbuf, c->root, r, c->bytes);
        break;
    case RK_COLL_GATHERV:
    case RK_COLL_ALLGATHERV:
        for (int s = 0; s < size && c->rcounts; s++)
            check_block(c->rbuf + (size_t)x->displs[s] * c->elem, s, 0,
                        (size_t)x->rcounts[s] * c->elem);
        break;
    case RK_COLL_ALLTOALL:
        for (int s = 0; s < size; s++)
            check_block(c->rbuf + (size_t)s * c->bytes, s, r, c->bytes);
        break;
    case RK_COLL_REDUCE_SCATTERV:
        assert_int_equal(value_check(c->rbuf, c->dtype, op, size, x->displs[r], x->rcounts[r]), -1);
        break;
    case RK_COLL_SCAN:
        assert_int_equal(value_check_prefix(c->rbuf, c->dtype, op, r + 1, size, 0, c->count), -1);
        break;
    case RK_COLL_EXSCAN:
        if (r > 0)
            assert_int_equal(value_check_prefix(c->rbuf, c->dtype, op, r, size, 0, c->count), -1);
        else
            assert_memory_equal(c->rbuf, in_place ? x->keep[0] : x->blank, c->bytes);
        break;
    case RK_COLL_ALLTOALLV:
        for (int s = 0; s < size; s++)
            check_block(c->rbuf + (size_t)c->rdispls[s] * c->elem, s, r, (size_t)c->rcounts[s] * c->elem);
        break;
    default:
        break;
    }
    if (!in_place && c->kind != RK_COLL_BCAST) /* inputs are not touched */
        assert_memory_equal(x->in[r], x->keep[r], x->room);
}

/* Neither commutative nor associative: the result depends on the whole tree of a sum. */
static void tree_op(void *dst, const void *a, const void *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x, y;

        memcpy(&x, (const char *)a + i * sizeof(x), sizeof(x));
        memcpy(&y, (const char *)b + i * sizeof(y), sizeof(y));
        x = (x ^ x >> 29) * 0x9e3779b97f4a7c15u + (y ^ y >> 31) * 0xbf58476d1ce4e5b9u + 1;
        memcpy((char *)dst + i * sizeof(x), &x, sizeof(x));
    }
}

/* Composition of x -> m x + k mod 2^32: associative, and not commutative. */
static void chain_op(void *dst, const void *a, const void *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t x[2], y[2];

        memcpy(x, (const char *)a + i * sizeof(x), sizeof(x));
        memcpy(y, (const char *)b + i * sizeof(y), sizeof(y));
        x[1] = y[0] * x[1] + y[1];
        x[0] *= y[0];
        memcpy((char *)dst + i * sizeof(x), x, sizeof(x));
    }
}

/* Sum of an element over vranks [v, v + n), halved down to ranks. */
static uint64_t tree_sum(const struct ranks *x, rk_op_fn fn, int64_t at, int v, int n)
{
    uint64_t left, right;
    int rank, members;

    if (n > 1) {
        left = tree_sum(x, fn, at, v, n / 2);
        right = tree_sum(x, fn, at, v + n / 2, n / 2);
    } else {
        rk_fold_members(v, x->w.size, &rank, &members);
        memcpy(&left, x->keep[rank] + (size_t)at * sizeof(left), sizeof(left));
        if (members == 1)
            return left;
        memcpy(&right, x->keep[rank + 1] + (size_t)at * sizeof(right), sizeof(right));
    }
    fn(&left, &left, &right, 1);
    return left;
}

/* Sum of an element over the 2^k ranks up to rank r, or those that there are, as recursive doubling takes it. */
static uint64_t doubled_sum(const struct ranks *x, rk_op_fn fn, int64_t at, int r, int k)
{
    uint64_t high, low;

    if (k == 0) {
        memcpy(&high, x->keep[r] + (size_t)at * sizeof(high), sizeof(high));
        return high;
    }
    high = doubled_sum(x, fn, at, r, k - 1);
    if (r < 1 << (k - 1))
        return high;
    low = doubled_sum(x, fn, at, r - (1 << (k - 1)), k - 1);
    fn(&high, &low, &high, 1);
    return high;
}

/* Prefix of rank r; exclusive: of the ranks below, from the nearest ones to the lowest, r > 0. */
static uint64_t prefix_sum(const struct ranks *x, rk_op_fn fn, int64_t at, int r, bool exclusive)
{
    uint64_t sum, low;

    if (!exclusive)
        return doubled_sum(x, fn, at, r, rk_log2_ceil(x->w.size));
    sum = doubled_sum(x, fn, at, r - 1, 0);
    for (int k = 1; r >= 1 << k; k++) {
        low = doubled_sum(x, fn, at, r - (1 << k), k);
        fn(&sum, &low, &sum, 1);
    }
    return sum;
}

static void check_ordered(const struct ranks *x, int r)
{
    const struct rk_coll_call *c = &x->call[r];
    int pow2 = rk_pow2_floor(x->w.size);
    int64_t first = c->kind == RK_COLL_REDUCE_SCATTER ? r * c->count : c->kind == RK_COLL_REDUCE_SCATTERV ? x->displs[r] : 0;
    int64_t count = c->kind == RK_COLL_REDUCE_SCATTERV ? x->rcounts[r] : c->count;

    for (int64_t i = 0; i < count && (c->kind != RK_COLL_REDUCE || r == c->root); i++) {
        int64_t at = first + i;
        uint64_t got, want;

        memcpy(&got, c->rbuf + (size_t)i * sizeof(got), sizeof(got));
        if (c->kind == RK_COLL_SCAN || c->kind == RK_COLL_EXSCAN)
            want = c->kind == RK_COLL_SCAN || r > 0 ? prefix_sum(x, c->fn, at, r, c->kind == RK_COLL_EXSCAN) : got;
        else
            want = tree_sum(x, c->fn, at, 0, pow2);
        if (got != want)
            fail_msg("%s, %d ranks, root %d: rank %d has another order in element %lld", rk_coll_name[c->kind], x->w.size,
                     c->root, r, (long long)i);
    }
}

static void free_ranks(struct ranks *x, int size)
{
    for (int r = 0; r < size; r++) {
        free(x->hosts[r]);
        free(x->in[r]);
        free(x->out[r]);
        free(x->keep[r]);
    }
    fake_close(&x->w);
    free(x->blank);
    free(x);
}

static void run_one(const struct rk_algo *algo, int size, int64_t count, rank_dtype_t d, rank_op_t op,
                    int root, bool in_place, bool synchronous, uint64_t seed, rk_op_fn ordered)
{
    struct ranks *x = calloc(1, sizeof(*x));
    int64_t counts[FAKE_MAX], displs[FAKE_MAX], at = 0;

    fake_open(&x->w, size, synchronous, seed);
    for (int r = 0; r < size; r++) {
        counts[r] = v_count(count, r);
        displs[r] = at;
        at += counts[r];
    }
    x->rcounts = counts;
    x->displs = displs;
    for (int r = 0; r < size; r++)
        prepare(x, algo, r, count, d, op, root, in_place);
    for (int r = 0; ordered && r < size; r++) {
        x->call[r].fn = ordered;
        x->call[r].ordered = true;
    }
    for (int i = 0; i < size; i++) {
        int r = (int)((seed + (uint64_t)i * 5) % (uint64_t)size); /* not all begin in order */
        struct rk_sched *s;
        if (size % 5 == 0)
            r = i;
        s = rk_sched_new(&x->w.scheds, &x->w.team[r], 9);
        assert_non_null(s);
        s->reducer = (struct rk_reducer){.fn = x->call[r].fn, .dtype = x->call[r].dtype};
        if (algo->needs & RK_NEEDS_HOSTS)
            s->hosts = x->hosts[r] = rk_hosts_new(node_of, size, r);
        rk_build_segments(s, algo, &x->call[r]);
        memset(&x->req[r], 0, sizeof(x->req[r]));
        rk_sched_request(&x->req[r], &x->w.ctx);
        rk_sched_start(s, &x->req[r]);
        if (seed & 4)
            fake_deliver(&x->w);
    }
    fake_run(&x->w);
    for (int r = 0; r < size; r++) {
        if (!x->req[r].done)
            fail_msg("%s %s, %d ranks, count %lld, root %d: rank %d waits for ever",
                     rk_coll_name[algo->kind], algo->name, size, (long long)count, root, r);
        assert_int_equal(x->req[r].status, RANK_OK);
        if (ordered)
            check_ordered(x, r);
        else
            check(x, r, op, in_place);
    }
    assert_int_equal(x->w.nsends, 0); /* each send was received */
    assert_int_equal(x->w.nrecvs, 0);
    free_ranks(x, size);
}

/* Ranks over hosts: in blocks, dealt round robin, or as it comes. */
static void place_ranks(int size, int hosts, int way, uint64_t seed)
{
    for (int r = 0; r < size; r++)
        node_of[r] = way == 0 ? (uint64_t)(7 * (r * hosts / size)) << 40 : way == 1 ? (uint64_t)(hosts - r % hosts) : (seed >> 33) % (unsigned)hosts;
    for (int r = 0; way == 2 && r < size; r++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        node_of[r] = (seed >> 33) % (unsigned)hosts;
    }
}

static void run_on_hosts(const struct rk_algo *algo)
{
    uint64_t seed = 1;

    for (int size = 2; size <= FAKE_MAX; size = next_size(size)) {
        for (int hosts = 1; hosts <= 8 && hosts <= size; hosts++) {
            for (int way = 0; way < 3; way++, seed += 7) {
                bool is_long = size <= 16 && seed % 2; /* lanes */

                if (size > 24 && (size + hosts + way) % 3) /* one way each */
                    continue;
                place_ranks(size, hosts, way, seed);
                run_one(algo, size, is_long ? 2501 : 1 + (int64_t)(seed % 5), seed % 3 ? RANK_F64 : RANK_INT32,
                        seed % 3 == 1 ? RANK_AVG : RANK_SUM, (int)(seed % (uint64_t)size), seed / 2 % 2, true, seed, NULL);
            }
        }
    }
    place_ranks(11, 3, 1, 0);
    run_one(algo, 11, 300007, RANK_INT32, RANK_MAX, 4, false, true, 99, NULL);
}

static void run_algo(const struct rk_algo *algo)
{
    enum { BLOCK_OF_MANY = 19 /* elements: of many ranks' blocks, none is cut */ };
    static const int64_t counts[] = {1, 3, 17, 130};
    uint64_t seed = 1;

    if (algo->needs & RK_NEEDS_HOSTS) {
        run_on_hosts(algo);
        return;
    }
    for (int size = 2; size <= FAKE_MAX; size = next_size(size)) {
        if ((algo->needs & RK_NEEDS_POW2) && !rk_is_pow2(size))
            continue;
        for (int i = 0; i < 4; i++, seed++) {
            int root = (int)(seed * 7 % (uint64_t)size);
            bool in_place = seed / 2 % 2;
            int64_t count = counts[i];
            if (size > 16 && i != size / 2 % 4) /* one count each, waiting sends, in place or not */
                continue;
            if (size > 16 && count > BLOCK_OF_MANY && most_blocks(algo->kind, size) > 1)
                count = BLOCK_OF_MANY;
            run_one(algo, size, count, i % 2 ? RANK_INT32 : size % 3 ? RANK_F64 : RANK_F16,
                    i == 2 && !is_scan(algo->kind) ? RANK_AVG : RANK_SUM, root, in_place, true, seed * 3, NULL);
            if (size <= 16 || size % 4 == 3)
                run_one(algo, size, count, RANK_INT16, RANK_MAX, size - 1 - root, !in_place,
                        false, seed * 5 + 1, NULL);
        }
    }
    /* Long enough for several segments and slices, and counts that do not divide. A sum's slices depend on the size, too. */
    for (int size = 3; size <= 4; size++) {
        if (size == 4 && !reduces(algo->kind) && !(algo->needs & RK_NEEDS_POW2))
            continue;
        if (!(algo->needs & RK_NEEDS_POW2) || rk_is_pow2(size))
            run_one(algo, size, 300007, RANK_INT32, RANK_SUM, size / 2, size % 2, true, 99, NULL);
    }
}

/* Operands in the order of ranks, and where the table claims it by the one tree, whatever the root. */
static void ordered(void **state)
{
    bool possible[RK_COLL_COUNT] = {false};

    (void)state;
    for (const struct rk_algo *a = rk_algos; a < rk_algos + rk_nalgos; a++) {
        if (!reduces(a->kind) || !a->build || (a->needs & (RK_NEEDS_COMMUTATIVE | RK_NEEDS_CELLS)))
            continue;
        possible[a->kind] = true;
        for (int size = 2; size <= FAKE_MAX; size = next_size(size)) {
            for (int i = 0; i < 4; i++) {
                int root = i == 0 ? 0 : (size * 5 + i) % size;
                run_one(a, size, 1 + i * 7, RANK_UINT64, RANK_SUM, root, i % 2, i / 2 % 2,
                        (uint64_t)(size * 4 + i), a->balanced ? tree_op : chain_op);
            }
        }
    }
    for (int k = 0; k < RK_COLL_COUNT; k++)
        assert_true(possible[k] || !reduces((enum rk_coll_kind)k));
}

#define ALGO_TEST(KIND)                                                                            \
    static void test_##KIND(void **state)                                                          \
    {                                                                                              \
        int n = 0;                                                                                 \
        (void)state;                                                                               \
        for (int i = 0; i < rk_nalgos; i++) {                                                      \
            if (rk_algos[i].kind == RK_COLL_##KIND && rk_algos[i].build &&       \
                !(rk_algos[i].needs & RK_NEEDS_CELLS)) { /* they have no schedule of messages */   \
                run_algo(&rk_algos[i]);                                                            \
                n++;                                                                               \
            }                                                                                      \
        }                                                                                          \
        assert_true(n > 0);                                                                        \
    }

ALGO_TEST(BARRIER)
ALGO_TEST(BCAST)
ALGO_TEST(REDUCE)
ALGO_TEST(ALLREDUCE)
ALGO_TEST(GATHER)
ALGO_TEST(ALLGATHER)
ALGO_TEST(ALLGATHERV)
ALGO_TEST(SCATTER)
ALGO_TEST(REDUCE_SCATTER)
ALGO_TEST(ALLTOALL)
ALGO_TEST(GATHERV)
ALGO_TEST(SCATTERV)
ALGO_TEST(ALLTOALLV)
ALGO_TEST(REDUCE_SCATTERV)
ALGO_TEST(SCAN)
ALGO_TEST(EXSCAN)

/* Element i of the block that a rank contributes for rank to; and the sum of the ranks from 0 to n - 1. */
static int32_t long_input(int rank, int to, int i)
{
    return i + rank + 3 * to;
}

static int32_t long_sum(int n, int to, int i)
{
    return n * i + n * (n - 1) / 2 + 3 * n * to;
}

/* Blocks of their own lengths: the first is the longest. */
static int long_count(enum rk_coll_kind kind, int r, int count)
{
    return kind == RK_COLL_REDUCE_SCATTERV ? count - r * 200001 : count;
}

/* Of element i of the result of rank r; false: it has none. */
static bool long_result(enum rk_coll_kind kind, int r, int size, int i, int32_t *want)
{
    switch (kind) {
    case RK_COLL_REDUCE: *want = long_sum(size, 0, i); return r == size - 1;
    case RK_COLL_ALLREDUCE: *want = long_sum(size, 0, i); return true;
    case RK_COLL_SCAN: *want = long_sum(r + 1, 0, i); return true;
    case RK_COLL_EXSCAN: *want = long_sum(r, 0, i); return r > 0;
    default: *want = long_sum(size, r, i); return true;
    }
}

static void check_long(struct ranks *x, enum rk_coll_kind kind, int size, int count, int room)
{
    for (int r = 0; r < size; r++) {
        int32_t *out = (void *)x->out[r], want = 0;
        int wrong = 0;

        assert_true(x->req[r].done);
        assert_int_equal(x->req[r].status, RANK_OK);
        for (int i = 0; i < long_count(kind, r, count) && long_result(kind, r, size, i, &want); i++)
            wrong += out[i] != want;
        assert_int_equal(wrong, 0);
        if (out != (void *)x->in[r])
            assert_int_equal(out[long_count(kind, r, count)], 0);
        if (out != (void *)x->in[r])
            memset(out, 0, (size_t)room * sizeof(*out));
    }
}

/* Build a long call of one rank. */
static struct rk_sched *build_long(struct ranks *x, const struct rk_algo *a, int size, int r, int count, int room, bool in_place)
{
    int blocks = a->kind == RK_COLL_REDUCE_SCATTER || a->kind == RK_COLL_REDUCE_SCATTERV ? size : 1, at = 0;
    int64_t counts[3];
    int32_t *in = calloc((size_t)(room * blocks), sizeof(*in));
    struct rk_sched *s = rk_sched_new(&x->w.scheds, &x->w.team[r], 1);

    for (int b = 0; b < blocks; b++) {
        counts[b] = long_count(a->kind, b, count);
        for (int i = 0; i < counts[b]; i++)
            in[at++] = long_input(r, b, i);
    }
    x->in[r] = (void *)in;
    x->out[r] = in_place ? x->in[r] : calloc((size_t)room, sizeof(*in));
    x->call[r] = (struct rk_coll_call){.team = &x->w.team[r], .kind = a->kind, .count = count, .bytes = (size_t)count * sizeof(*in),
                                       .elem = sizeof(*in), .dtype = RANK_INT32, .op = RANK_SUM, .in_place = in_place,
                                       .fn = rk_op_kernel(RANK_SUM, RANK_INT32), .root = size - 1,
                                       .sbuf = x->in[r], .rbuf = x->out[r],
                                       .rcounts = a->kind == RK_COLL_REDUCE_SCATTERV ? counts : NULL};
    s->reducer = (struct rk_reducer){.fn = x->call[r].fn, .dtype = RANK_INT32};
    rk_build_segments(s, a, &x->call[r]);
    s->kept = true;
    return s;
}

static void run_long(const struct rk_algo *a, int size, bool in_place)
{
    enum { LONG = 2 << 20, SCAN_LONG = 3 << 20 };
    int room = a->kind == RK_COLL_SCAN || a->kind == RK_COLL_EXSCAN ? SCAN_LONG : LONG, count = room - 4711;
    struct ranks *x = calloc(1, sizeof(*x));
    struct rk_sched *s[3];

    fake_open(&x->w, size, size == 3, (uint64_t)size);
    for (int r = 0; r < size; r++)
        s[r] = build_long(x, a, size, r, count, room, in_place);
    for (int again = 0; again < (in_place ? 1 : 2); again++) {
        for (int r = 0; r < size; r++) {
            if (again)
                rk_sched_rearm(s[r], 2);
            rk_sched_request(&x->req[r], &x->w.ctx);
            rk_sched_start(s[r], &x->req[r]);
        }
        fake_run(&x->w);
        check_long(x, a->kind, size, count, room);
    }
    for (int r = 0; r < size; r++) {
        rk_sched_free(s[r]);
        if (s[r]->held == 0 || s[r]->held > 4 << 20)
            fail_msg("%s %s, %d ranks: %zu bytes", rk_coll_name[a->kind], a->name, size, s[r]->held);
        if (!in_place)
            free(x->out[r]);
        free(x->in[r]);
    }
    fake_close(&x->w);
    free(x);
}

/* Long calls that are cut, of any length, take 4 MiB of scratch memory and steps at most; and can start again. */
static void memory_bounded(void **state)
{
    (void)state;
    for (const struct rk_algo *a = rk_algos; a < rk_algos + rk_nalgos; a++) {
        bool cut = a->kind == RK_COLL_REDUCE || a->kind == RK_COLL_ALLREDUCE || a->kind == RK_COLL_SCAN || a->kind == RK_COLL_EXSCAN ||
                   a->kind == RK_COLL_REDUCE_SCATTER || a->kind == RK_COLL_REDUCE_SCATTERV;

        if (!cut || !a->build || (a->needs & (RK_NEEDS_CELLS | RK_NEEDS_HOSTS)))
            continue;
        for (int size = 2; size <= 3; size++) {
            run_long(a, size, false);
            if (a->kind == RK_COLL_ALLREDUCE || a->kind == RK_COLL_REDUCE_SCATTER || a->kind == RK_COLL_REDUCE_SCATTERV ||
                a->kind == RK_COLL_SCAN)
                run_long(a, size, true);
        }
    }
}

/* A rank that comes first posts the receives of two rounds. */
static void receives_early(void **state)
{
    static const struct {
        enum rk_coll_kind kind;
        const char *name;
    } algos[] = {{RK_COLL_ALLREDUCE, "recursive_doubling"}, {RK_COLL_ALLREDUCE, "rabenseifner"},
                 {RK_COLL_REDUCE_SCATTER, "recursive_halving"}};

    (void)state;
    for (size_t i = 0; i < RK_ARRAY_LEN(algos); i++) {
        for (int size = 4; size <= 20; size++) {
            const struct rk_algo *algo = rk_algo_find(algos[i].kind, algos[i].name, strlen(algos[i].name));
            struct ranks *x = calloc(1, sizeof(*x));

            fake_open(&x->w, size, false, (uint64_t)size);
            for (int r = size - 1; r >= 0; r--) { /* the last one is never folded out */
                struct rk_sched *s = rk_sched_new(&x->w.scheds, &x->w.team[r], 1);

                prepare(x, algo, r, 64, RANK_INT32, RANK_SUM, 0, false);
                s->reducer = (struct rk_reducer){.fn = x->call[r].fn, .dtype = x->call[r].dtype};
                algo->build(s, &x->call[r]);
                rk_sched_request(&x->req[r], &x->w.ctx);
                rk_sched_start(s, &x->req[r]);
                if (r == size - 1)
                    assert_int_equal(x->w.recvs_of[r], 2);
            }
            fake_run(&x->w);
            for (int r = 0; r < size; r++) {
                assert_true(x->req[r].done);
                check(x, r, RANK_SUM, false);
            }
            free_ranks(x, size);
        }
    }
}

/* No rank leaves a barrier before the last has come. */
static void barrier_holds(void **state)
{
    (void)state;
    for (int size = 2; size <= FAKE_MAX; size = next_size(size)) {
        struct ranks *x = calloc(1, sizeof(*x));
        const struct rk_algo *algo = rk_algo_find(RK_COLL_BARRIER, "dissemination", 13);
        int late = size / 3;

        fake_open(&x->w, size, size % 2, (uint64_t)size);
        for (int k = 0; k < size; k++) {
            int r = (late + 1 + k) % size; /* late is the last */
            struct rk_sched *s;
            if (r == late) {
                fake_run(&x->w);
                for (int o = 0; o < size; o++)
                    assert_false(x->req[o].done);
            }
            prepare(x, algo, r, 0, RANK_BYTE, RANK_BAND, 0, false);
            s = rk_sched_new(&x->w.scheds, &x->w.team[r], 1);
            algo->build(s, &x->call[r]);
            rk_sched_request(&x->req[r], &x->w.ctx);
            rk_sched_start(s, &x->req[r]);
        }
        fake_run(&x->w);
        for (int r = 0; r < size; r++)
            assert_true(x->req[r].done);
        free_ranks(x, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_BARRIER),    cmocka_unit_test(barrier_holds),
        cmocka_unit_test(test_BCAST),      cmocka_unit_test(test_REDUCE),
        cmocka_unit_test(test_ALLREDUCE),  cmocka_unit_test(test_GATHER),
        cmocka_unit_test(test_ALLGATHER),  cmocka_unit_test(test_ALLGATHERV),
        cmocka_unit_test(test_SCATTER),    cmocka_unit_test(test_REDUCE_SCATTER),
        cmocka_unit_test(test_ALLTOALL),   cmocka_unit_test(ordered), cmocka_unit_test(receives_early),
        cmocka_unit_test(memory_bounded),
        cmocka_unit_test(test_GATHERV),    cmocka_unit_test(test_SCATTERV),
        cmocka_unit_test(test_ALLTOALLV),  cmocka_unit_test(test_SCAN),
        cmocka_unit_test(test_EXSCAN),     cmocka_unit_test(test_REDUCE_SCATTERV),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
