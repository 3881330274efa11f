/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate.c: measure the protocols of large messages between two cores.
 *
 * A child writes a buffer, as a sender has just done, and its parent fetches it by the library's own code: mapped
 * copy, CMA, assisted CMA, byte ring. The data is verified. The protocols take turns, so that other load
 * affects all alike; the median of several samples counts. A rate far from those of neighbouring sizes is measured
 * again.
 */
#include "lib/base/clock.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/shm/fifo.h"
#include "lib/channel/shm/split_copy.h"
#include "lib/node/cma.h"
#include "tools/rankinfo/outlier.h"
#include "tools/rankinfo/paths.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 15, AGAIN = 3 /* repetitions of a rate */, MEETINGS = 1000, BOX = 256 << 10, MOST = 4 << 20, KIND = RK_KIND_CHANNEL_FIRST,
       ID_BYTES = 8 /* header of a part of a stream */ };

#define TIME_LIMIT_NS 30000000000u

struct shared {
    /* the parent's turn numbers: wanted, in progress, done; and the subject of the turn */
    _Atomic uint64_t wanted RK_ALIGNED_LINE, begun, got;
    _Atomic int class, proto; /* proto RK_PROTOS: the end */
    /* the child's */
    _Atomic uint64_t written RK_ALIGNED_LINE, helped;
    _Atomic uint64_t claims RK_ALIGNED_LINE;
    _Atomic uint64_t asked RK_ALIGNED_LINE, answered RK_ALIGNED_LINE;
    _Atomic uint32_t failed;
    _Alignas(4096) char box[BOX];
    _Alignas(4096) char mapped[MOST];
    _Alignas(4096) char taken[MOST];
};

struct side {
    struct shared *s;
    struct rk_fifo_shape shape;
    struct rk_fifo_out out; /* the child's */
    struct rk_fifo_in in;   /* the parent's */
    char *theirs, *mine;    /* private buffers of child and parent, at equal addresses in both */
    pid_t parent, child;
    bool cma;
    uint64_t until;
};

/* Wait until *word is turn; returns false if the other process failed or nothing came for long. */
static bool await(struct side *w, _Atomic uint64_t *word, uint64_t turn)
{
    for (unsigned int i = 1; atomic_load_explicit(word, memory_order_acquire) != turn; i++) {
        if (i % 4096 == 0 && (atomic_load(&w->s->failed) || rk_clock_ns() > w->until))
            return false;
        rk_cpu_relax();
    }
    return true;
}

static void calibrate_fill(void *buf, size_t bytes, uint64_t turn)
{
    uint64_t *p = buf;

    for (size_t i = 0; i < bytes / 8; i++)
        p[i] = (turn << 32) + i;
}

static bool filled(const void *buf, size_t bytes, uint64_t turn)
{
    const uint64_t *p = buf;
    uint64_t bad = 0;

    for (size_t i = 0; i < bytes / 8; i++)
        bad |= p[i] ^ ((turn << 32) + i);
    return bad == 0;
}

/* Can it be measured here? */
static bool possible(const struct side *w, const struct rk_shm_proto *p)
{
    return !(p->needs & RK_NEEDS_CMA && !w->cma);
}

/* Source and target of the copy. */
static char *source(const struct side *w, const struct rk_shm_proto *p)
{
    return p->needs & RK_NEEDS_MAPPING ? w->s->mapped : w->theirs;
}

static char *target(const struct side *w, const struct rk_shm_proto *p)
{
    return p == &rk_shm_proto_mapped2 ? w->s->taken : w->mine;
}

static uint64_t chunk_of(size_t bytes, const struct rk_shm_proto *p)
{
    return rk_chunk_of(bytes, p->needs & RK_NEEDS_MAPPING ? RK_CHUNK_MAPPED : RK_CHUNK_MAX);
}

/* ------------------------------------------------------------------------- child */

static bool put_all(struct side *w, size_t bytes, const struct rk_shm_proto *p)
{
    struct rk_hdr hdr = {.kind = KIND};
    char id[RK_CELL_BYTES] = {0};

    w->out.nt_from = p == &rk_shm_proto_ring_nt ? 0 : UINT32_MAX;
    for (size_t at = 0; at < bytes;) {
        size_t room = w->shape.frame - ID_BYTES, n = bytes - at < room ? bytes - at : room;

        hdr.len = (uint32_t)(n + ID_BYTES);
        for (unsigned int i = 1; !rk_fifo_put(&w->out, &hdr, id, ID_BYTES, w->theirs + at); i++) {
            if (i % 4096 == 0 && (atomic_load(&w->s->failed) || rk_clock_ns() > w->until))
                return false;
        }
        at += n;
    }
    return true;
}

static bool write_share(struct side *w, size_t bytes, const struct rk_shm_proto *p, uint64_t turn)
{
    uint64_t chunk = chunk_of(bytes, p);
    struct rk_share share;

    while (rk_split_claim(&w->s->claims, (uint32_t)turn, bytes, chunk, true, &share)) {
        char *to = target(w, p) + share.at, *from = source(w, p) + share.at;

        if (p->needs & RK_NEEDS_MAPPING)
            memcpy(to, from, share.bytes);
        else if (rk_cma_write(w->parent, (uint64_t)(uintptr_t)to, from, share.bytes) != RANK_OK)
            return false;
    }
    atomic_store(&w->s->helped, turn);
    return true;
}

static bool calibrate_give(struct side *w, size_t bytes, const struct rk_shm_proto *p, uint64_t turn)
{
    calibrate_fill(source(w, p), bytes, turn);
    atomic_store_explicit(&w->s->written, turn, memory_order_release);
    if (!await(w, &w->s->begun, turn))
        return false;
    if (p->needs & RK_NEEDS_RING && !put_all(w, bytes, p))
        return false;
    if (p->needs & RK_NEEDS_ASSIST && !write_share(w, bytes, p, turn))
        return false;
    return await(w, &w->s->got, turn);
}

/* ------------------------------------------------------------------------ parent */

static bool take_all(struct side *w, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        struct rk_hdr hdr;
        uint64_t behind;
        const char *payload;

        for (unsigned int i = 1; !rk_fifo_ready(&w->in); i++) {
            if (i % 4096 == 0 && (atomic_load(&w->s->failed) || rk_clock_ns() > w->until))
                return false;
        }
        payload = rk_fifo_read(&w->in, w->shape.frame, &hdr, &behind);
        if (!payload || hdr.len <= ID_BYTES || hdr.len - ID_BYTES > bytes - at)
            return false;
        memcpy(w->mine + at, payload + ID_BYTES, hdr.len - ID_BYTES);
        at += hdr.len - ID_BYTES;
        rk_fifo_consume(&w->in, behind);
    }
    return true;
}

static bool read_share(struct side *w, size_t bytes, const struct rk_shm_proto *p, uint64_t turn)
{
    uint64_t chunk = chunk_of(bytes, p);
    struct rk_share share;

    while (rk_split_claim(&w->s->claims, (uint32_t)turn, bytes, chunk, false, &share)) {
        char *to = target(w, p) + share.at, *from = source(w, p) + share.at;

        if (p->needs & RK_NEEDS_MAPPING)
            memcpy(to, from, share.bytes);
        else if (rk_cma_read(w->child, to, (uint64_t)(uintptr_t)from, share.bytes) != RANK_OK)
            return false;
    }
    return await(w, &w->s->helped, turn);
}

static bool calibrate_fetch(struct side *w, size_t bytes, const struct rk_shm_proto *p, uint64_t turn)
{
    if (p->needs & RK_NEEDS_ASSIST)
        return read_share(w, bytes, p, turn);
    if (p->needs & RK_NEEDS_CMA)
        return rk_cma_read(w->child, w->mine, (uint64_t)(uintptr_t)w->theirs, bytes) == RANK_OK;
    if (p->needs & RK_NEEDS_RING)
        return take_all(w, bytes);
    memcpy(w->mine, w->s->mapped, bytes);
    return true;
}

static void calibrate_announce(struct side *w, int class, int proto, uint64_t turn)
{
    atomic_store(&w->s->class, class);
    atomic_store(&w->s->proto, proto);
    atomic_store(&w->s->wanted, turn);
}

static bool calibrate_take(struct side *w, size_t bytes, const struct rk_shm_proto *p, uint64_t turn, uint64_t *ns)
{
    uint64_t t;

    atomic_store(&w->s->claims, rk_split_begin((uint32_t)turn));
    calibrate_announce(w, rk_proto_class(bytes), (int)p->id, turn);
    if (!await(w, &w->s->written, turn))
        return false;
    t = rk_clock_ns();
    atomic_store_explicit(&w->s->begun, turn, memory_order_release);
    if (!calibrate_fetch(w, bytes, p, turn))
        return false;
    *ns = rk_clock_ns() - t;
    if (!filled(target(w, p), bytes, turn)) {
        rk_error("calibration: protocol %s gave wrong data; please report this", p->name);
        return false;
    }
    atomic_store(&w->s->got, turn);
    return true;
}

/* -------------------------------------------------------------------------- control */

static int calibrate_ascending(const void *a, const void *b)
{
    uint64_t x, y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Measure round trips of a word; ns is their 90th percentile. Uses turn numbers of its own. */
static bool calibrate_meet(struct side *w, bool parent, uint32_t *ns)
{
    uint64_t took[MEETINGS], t;

    for (uint64_t turn = 1; turn <= MEETINGS; turn++) {
        if (!parent) {
            if (!await(w, &w->s->asked, turn))
                return false;
            atomic_store_explicit(&w->s->answered, turn, memory_order_release);
            continue;
        }
        t = rk_clock_ns();
        atomic_store_explicit(&w->s->asked, turn, memory_order_release);
        if (!await(w, &w->s->answered, turn))
            return false;
        took[turn - 1] = rk_clock_ns() - t;
    }
    if (parent) {
        qsort(took, MEETINGS, sizeof(took[0]), calibrate_ascending);
        *ns = (uint32_t)took[MEETINGS * 9 / 10];
    }
    return true;
}

/* The child: execute the parent's turns. */
static bool calibrate_serve(struct side *w)
{
    if (!calibrate_meet(w, false, NULL))
        return false;
    for (uint64_t turn = 1;; turn++) {
        int proto;

        if (!await(w, &w->s->wanted, turn))
            return false;
        proto = atomic_load(&w->s->proto);
        if (proto == RK_PROTOS)
            return true;
        if (!calibrate_give(w, (size_t)rk_proto_bytes(atomic_load(&w->s->class)), rk_shm_protos[proto], turn))
            return false;
    }
}

/* Measure the wanted protocols at one size. The first sample of each is a warm-up. */
static bool measure_class(struct side *w, int class, const bool *wanted, uint64_t *turn, uint32_t *rate)
{
    uint64_t ns[RK_PROTOS][SAMPLES], median;
    size_t bytes = (size_t)rk_proto_bytes(class);

    for (int k = -1; k < SAMPLES; k++) {
        for (int p = 0; p < RK_PROTOS; p++) {
            if (wanted[p] && !calibrate_take(w, bytes, rk_shm_protos[p], ++*turn, &ns[p][k < 0 ? 0 : k]))
                return false;
        }
    }
    for (int p = 0; p < RK_PROTOS; p++) {
        if (!wanted[p])
            continue;
        qsort(ns[p], SAMPLES, sizeof(ns[p][0]), calibrate_ascending);
        median = ns[p][SAMPLES / 2];
        rate[p] = (uint32_t)(bytes * 1000 / (median ? median : 1));
        rate[p] += rate[p] == 0;
    }
    return true;
}

/* Measure outliers again and keep the rate that fits its neighbours better. Returns true if there were any. */
static bool measure_outliers(struct side *w, uint64_t *turn, struct rk_proto_table *paths, bool *failed)
{
    bool some = false;

    for (int i = 0; i < RK_PROTO_CLASSES && !*failed; i++) {
        uint32_t expected[RK_PROTOS], again[RK_PROTOS], of[RK_PROTO_CLASSES];
        bool wanted[RK_PROTOS] = {false}, here = false;

        for (int p = 0; p < RK_PROTOS; p++) {
            if (!possible(w, rk_shm_protos[p]))
                continue;
            for (int k = 0; k < RK_PROTO_CLASSES; k++)
                of[k] = paths->rate[k][p];
            expected[p] = info_expected_rate(of, RK_PROTO_CLASSES, i);
            wanted[p] = info_is_outlier(of, RK_PROTO_CLASSES, i);
            here = here || wanted[p];
        }
        if (!here)
            continue;
        some = true;
        *failed = !measure_class(w, i, wanted, turn, again);
        for (int p = 0; p < RK_PROTOS && !*failed; p++) {
            if (wanted[p])
                paths->rate[i][p] = info_nearer_rate(expected[p], paths->rate[i][p], again[p]);
        }
    }
    return some;
}

/* The parent: measure every size, then repeat outliers. */
static bool go_through(struct side *w, struct rk_proto_table *paths)
{
    uint64_t turn = 0;
    bool wanted[RK_PROTOS], failed = false;

    if (!calibrate_meet(w, true, &paths->meet))
        return false;
    for (int p = 0; p < RK_PROTOS; p++)
        wanted[p] = possible(w, rk_shm_protos[p]);
    for (int i = 0; i < RK_PROTO_CLASSES; i++) {
        if (!measure_class(w, i, wanted, &turn, paths->rate[i]))
            return false;
    }
    /* On a machine too busy for that, the first rates stay. */
    for (int k = 0; k < AGAIN && rk_clock_ns() < w->until - TIME_LIMIT_NS / 2; k++) {
        if (!measure_outliers(w, &turn, paths, &failed) || failed)
            break;
    }
    if (!failed)
        calibrate_announce(w, 0, RK_PROTOS, turn + 1);
    return !failed;
}

/* Pin to the i-th usable core. */
static bool pin(int i)
{
    cpu_set_t may, one;

    if (sched_getaffinity(0, sizeof(may), &may))
        return false;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &may) && i-- == 0)
            CPU_SET(core, &one);
    }
    return CPU_COUNT(&one) == 1 && sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void calibrate_child(struct side *w)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != w->parent)
        _exit(1);
    if (!pin(1) || !calibrate_serve(w)) {
        atomic_store(&w->s->failed, 1);
        _exit(1);
    }
    _exit(0);
}

/* Run the two processes; restores this one's affinity. */
static bool calibrate_measure(struct side *w, struct rk_proto_table *paths)
{
    cpu_set_t before;
    bool ok;
    int status;

    if (sched_getaffinity(0, sizeof(before), &before) || CPU_COUNT(&before) < 2) {
        rk_error("calibration needs two cores, and this process may use one; give it more "
                 "(taskset, the job's --cpus-per-rank)");
        return false;
    }
    rk_cma_allow();
    w->parent = getpid();
    w->until = rk_clock_ns() + TIME_LIMIT_NS;
    fflush(NULL);
    w->child = fork();
    if (w->child < 0) {
        rk_error("calibration: fork: %m");
        return false;
    }
    if (w->child == 0)
        calibrate_child(w);
    ok = pin(0) && go_through(w, paths);
    if (!ok) {
        atomic_store(&w->s->failed, 1);
        kill(w->child, SIGKILL);
    }
    while (waitpid(w->child, &status, 0) < 0 && errno == EINTR)
        ;
    sched_setaffinity(0, sizeof(before), &before);
    if (!ok || status)
        rk_error("calibration did not finish within 30 s, or a copy failed; is the machine overloaded?");
    return ok && !status;
}

static void *calibrate_room(size_t bytes, int flags)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

bool info_measure_paths(struct rk_proto_table *paths)
{
    struct side w = {.shape = rk_fifo_shape(BOX)};
    uint32_t word = 0x5eed;
    bool ok = false;

    memset(paths, 0, sizeof(*paths));
    w.s = calibrate_room(sizeof(*w.s), MAP_SHARED);
    w.theirs = calibrate_room(MOST, MAP_PRIVATE);
    w.mine = calibrate_room(MOST, MAP_PRIVATE);
    if (w.s && w.theirs && w.mine) {
        rk_fifo_out_init(&w.out, w.s->box, &w.shape);
        rk_fifo_in_init(&w.in, w.s->box, &w.shape);
        /* If refused for itself, it is refused for other processes. */
        w.cma = rk_conf.cma != RK_CONF_CMA_OFF &&
                rk_cma_works(getpid(), (uint64_t)(uintptr_t)&word, word);
        ok = calibrate_measure(&w, paths);
    } else {
        rk_error("calibration: no memory");
    }
    if (w.s)
        munmap(w.s, sizeof(*w.s));
    if (w.theirs)
        munmap(w.theirs, MOST);
    if (w.mine)
        munmap(w.mine, MOST);
    rk_proto_table_choose(paths);
    paths->measured = ok;
    return ok;
}
