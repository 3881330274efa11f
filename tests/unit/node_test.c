/* SPDX-License-Identifier: BSD-3-Clause */
/* node_test.c: attach to the node segment, check liveness, sleep and wake. */
#include "tests/unit/unit.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/boot/boot.h"
#include "lib/core/engine.h"
#include "lib/node/cma.h"
#include "lib/node/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { OTHER_USER = 65534, RANKS = 4, BOXES = 3 << 20, ARENAS = 1 << 20 };
static const size_t regions[RK_REGION_COUNT] = {BOXES, ARENAS};

/* What parent and children exchange. */
struct words {
    _Atomic int ready, go, seen;
    _Atomic uint64_t when;
    struct rk_memfd_card card;
    struct rk_node_slot slot;
};

static struct words *words_new(void)
{
    void *p = mmap(NULL, sizeof(struct words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static bool until(_Atomic int *word, int value)
{
    uint64_t deadline = rk_clock_ns() + 20000000000u;

    while (atomic_load(word) < value) {
        if (rk_clock_ns() > deadline)
            return false;
        sched_yield();
    }
    return true;
}

static int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* ------------------------------------------------------------- make and attach */

/* Another user's process, with a segment. */
static int be_another_user(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (setresuid(OTHER_USER, OTHER_USER, OTHER_USER) || prctl(PR_SET_DUMPABLE, 1) ||
        rk_node_create(RANKS, regions, &node, &w->card) || rk_node_join(node, 1, 11))
        return 1;
    w->slot = *node->mine;
    atomic_store(&w->ready, 1);
    return until(&w->go, 1) ? 0 : 2;
}

/* Root could map and read it all. */
static void another_user(void **state)
{
    struct rk_memfd_card card;
    struct words *w = words_new();
    struct rk_node *node;
    void *base;
    pid_t pid;
    int fd;

    (void)state;
    if (geteuid() != 0)
        skip();
    pid = unit_spawn(be_another_user, w);
    assert_true(until(&w->ready, 1));
    assert_int_equal(rk_node_attach(&w->card, RANKS, &node), RANK_ERR_UNREACHABLE);
    assert_false(rk_cma_works(w->slot.pid, w->slot.probe_addr, w->slot.probe_word));
    atomic_store(&w->go, 1);
    assert_int_equal(unit_reap(pid), 0);
    /* Memory of another user at a descriptor of this one. */
    assert_int_equal(seteuid(OTHER_USER), 0);
    assert_int_equal(rk_memfd_create(4096, "a test", &fd, &base, &card), RANK_OK);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rk_node_attach(&card, RANKS, &node), RANK_ERR_UNREACHABLE);
    rk_memfd_close(fd, base, 4096);
    munmap(w, sizeof(*w));
}

static int attach_and_write(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK)
        return 1;
    if (node->nlocal != RANKS || node->head->nonce != w->card.nonce)
        return 2;
    if (rk_node_commit(node, RK_REGION_FIFOS, 0, BOXES) != RANK_OK)
        return 3;
    if (rk_node_join(node, 1, 11) != RANK_OK)
        return 4;
    strcpy(rk_node_at(node, RK_REGION_FIFOS, BOXES - 100), "from the child");
    rk_node_close(node);
    return 0;
}

static void make_and_attach(void **state)
{
    struct words *w = words_new();
    struct rk_node *node;
    int fds = count_fds();

    (void)state;
    assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
    assert_int_equal(rk_node_join(node, 0, 10), RANK_OK);
    assert_int_equal(unit_reap(unit_spawn(attach_and_write, w)), 0);
    assert_string_equal(rk_node_at(node, RK_REGION_FIFOS, BOXES - 100), "from the child");
    assert_int_equal(node->slots[1].world_rank, 11);
    assert_int_equal(atomic_load(&node->slots[1].state), RK_SLOT_DONE);
    assert_int_equal(atomic_load(&node->slots[0].state), RK_SLOT_UP);
    assert_int_equal(atomic_load(&node->slots[2].state), RK_SLOT_EMPTY);
    assert_int_equal(node->slots[0].pid, getpid());
    /* regions do not overlap, and lie inside */
    assert_true((char *)rk_node_at(node, RK_REGION_FIFOS, 0) >= (char *)&node->slots[RANKS]);
    assert_true((char *)rk_node_at(node, RK_REGION_ARENAS, 0) >=
                (char *)rk_node_at(node, RK_REGION_FIFOS, BOXES));
    assert_true((char *)rk_node_at(node, RK_REGION_ARENAS, ARENAS) <= node->base + node->bytes);
    /* a peer that left in order is no death */
    assert_int_equal(rk_node_check_deaths(node), 0);
    rk_node_close(node);
    rk_node_close(NULL);
    assert_int_equal(count_fds(), fds);
    munmap(w, sizeof(*w));
}

/* Sharing is proven by the nonce: another process's memory, no memory at all, another size, another
 * descriptor. */
static void not_ours(void **state)
{
    struct words *w = words_new();
    struct rk_node *node, *other;
    struct rk_memfd_card bad;
    int fds, fd, pipe_fd[2];

    (void)state;
    assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
    fds = count_fds();
    bad = w->card;
    bad.nonce++;
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    bad = w->card;
    bad.bytes += 4096;
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    bad = w->card;
    bad.pid = 1 << 22; /* no such process */
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    bad = w->card;
    bad.fd = 1 << 20;
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bad = w->card;
    bad.fd = fd;
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    close(fd);
    assert_int_equal(pipe(pipe_fd), 0); /* opening it could block */
    bad.fd = pipe_fd[0];
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    fd = memfd_create("librank", MFD_CLOEXEC); /* right name, right size, never filled */
    assert_int_equal(ftruncate(fd, (off_t)w->card.bytes), 0);
    bad.fd = fd;
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    /* filled, but any process of the user can truncate it */
    assert_int_equal(pwrite(fd, &bad.nonce, sizeof(bad.nonce), 0), sizeof(bad.nonce));
    assert_int_equal(rk_node_attach(&bad, RANKS, &other), RANK_ERR_UNREACHABLE);
    close(fd);
    assert_int_equal(ftruncate(node->fd, 4096), -1);
    /* The layout of another version is an error, not a guess. */
    {
        struct unit_stderr said;
        unit_stderr_begin(&said);
        assert_int_equal(rk_node_attach(&w->card, RANKS + 1, &other), RANK_ERR_BOOT);
        unit_stderr_end(&said);
        assert_contains(said.text, "version");
    }
    assert_int_equal(count_fds(), fds);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

/* Each rank by what it and the others may use, not by what the node has. */
static void shared_cores(void **state)
{
    static const uint64_t bound[RANKS] = {1, 1, 8, 0}; /* the last has not come */
    struct words *w = words_new();
    struct rk_affinity mine;
    struct rk_node *node;

    (void)state;
    assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
    assert_int_equal(rk_node_join(node, 0, 0), RANK_OK);
    rk_affinity_query(&mine);
    assert_memory_equal(&node->cores[0], &mine, sizeof(mine));
    rk_node_settle(node);
    assert_false(node->oversubscribed);
    for (int i = 0; i < RANKS; i++)
        node->cores[i] = (struct rk_affinity){{bound[i]}};
    rk_node_settle(node);
    assert_true(node->oversubscribed);
    node->cores[1].word[0] = 2;
    rk_node_settle(node);
    assert_false(node->oversubscribed);
    assert_int_equal(node->core_share, 1);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

/* ------------------------------------------------------------------------ life */

static int join_and_wait(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK)
        return 1;
    if (rk_node_join(node, 1, 1) != RANK_OK)
        return 2;
    atomic_store(&w->ready, 1);
    for (;;)
        pause();
}

static struct rk_node *node_with_child(struct words *w, int (*fn)(void *), pid_t *pid)
{
    struct rk_node *node;

    assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
    assert_int_equal(rk_node_join(node, 0, 0), RANK_OK);
    *pid = unit_spawn(fn, w);
    assert_true(until(&w->ready, 1));
    rk_node_settle(node);
    return node;
}

static void killed(void **state)
{
    struct words *w = words_new();
    pid_t pid;
    struct rk_node *node = node_with_child(w, join_and_wait, &pid);
    uint64_t t0;
    int found = 0;

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(rk_node_check_deaths(node), 0);
    assert_true(rk_node_process_alive(&node->slots[1]));
    kill(pid, SIGKILL);
    /* Not reaped: a zombie is dead enough. */
    t0 = rk_clock_ns();
    while (!found && rk_clock_ns() - t0 < 5000000000u)
        found = rk_node_check_deaths(node);
    assert_int_equal(found, 1);
    assert_true(rk_clock_ns() - t0 < 1000000000u);
    assert_true(rk_node_is_dead(node, 1));
    assert_false(rk_node_process_alive(&node->slots[1]));
    assert_int_equal(atomic_load(&node->head->deaths), 1);
    assert_int_equal(rk_node_check_deaths(node), 0); /* reported once */
    rk_node_mark_dead(node, 1);                      /* harmless */
    assert_int_equal(atomic_load(&node->head->deaths), 1);
    assert_int_equal(unit_reap(pid), 128 + SIGKILL);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

/* Stopped is not dead. */
/* A rank that polls now and then, and never waits, finds it too: within a few polls. */
static void found_by_looks(void **state)
{
    struct words *w = words_new();
    pid_t pid;
    struct rk_node *node = node_with_child(w, join_and_wait, &pid);
    int local[RANKS];
    struct rk_boot boot = {.rank = 0, .size = RANKS, .nlocal = RANKS, .local = local};
    struct rk_peer *peers[RANKS] = {NULL};
    _Atomic uint64_t dead[1] = {0};
    struct rk_engine engine = {.npeers = RANKS, .peers = peers, .boot_dead = dead};
    struct rk_ctx ctx = {.boot = &boot, .node = node, .engine = &engine};

    (void)state;
    for (int i = 0; i < RANKS; i++)
        local[i] = i;
    rk_sendq_open(&engine);
    for (int i = 0; i < 3; i++)
        rk_progress_once(&ctx);
    assert_int_equal(atomic_load(&node->head->deaths), 0);
    kill(pid, SIGKILL);
    for (int i = 0; i < 100 && !peers[1]; i++, usleep(30000))
        rk_progress_once(&ctx);
    assert_non_null(peers[1]); /* busy ranks check at each 4096th call */
    assert_int_equal(peers[1]->state, RK_PEER_DEAD);
    unit_reap(pid);
    free(peers[1]);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

static void stopped(void **state)
{
    struct words *w = words_new();
    pid_t pid;
    struct rk_node *node = node_with_child(w, join_and_wait, &pid);

    (void)state;
    kill(pid, SIGSTOP);
    for (int i = 0; i < 50; i++) {
        usleep(2000);
        assert_int_equal(rk_node_check_deaths(node), 0);
    }
    assert_true(rk_node_process_alive(&node->slots[1]));
    kill(pid, SIGCONT);
    assert_int_equal(rk_node_check_deaths(node), 0);
    kill(pid, SIGKILL);
    unit_reap(pid);
    assert_int_equal(rk_node_check_deaths(node), 1);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

static void *join_in_thread(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (rk_node_attach(&w->card, RANKS, &node) == RANK_OK && rk_node_join(node, 1, 1) == RANK_OK)
        return node;
    return NULL;
}

/* The thread that joined ends; the process lives on. */
static int join_then_end_thread(void *arg)
{
    struct words *w = arg;
    pthread_t t;
    void *node;

    if (pthread_create(&t, NULL, join_in_thread, w) || pthread_join(t, &node) || !node)
        return 1;
    atomic_store(&w->ready, 1);
    if (!until(&w->go, 1))
        return 2;
    rk_node_close(node); /* from another thread than joined */
    atomic_store(&w->ready, 2);
    for (;;)
        pause();
}

static void thread_ended(void **state)
{
    struct words *w = words_new();
    pid_t pid;
    struct rk_node *node = node_with_child(w, join_then_end_thread, &pid);

    (void)state;
    for (int i = 0; i < 50; i++) {
        usleep(1000);
        assert_int_equal(rk_node_check_deaths(node), 0);
    }
    assert_int_equal(atomic_load(&node->slots[1].state), RK_SLOT_UP);
    atomic_store(&w->go, 1);
    assert_true(until(&w->ready, 2));
    assert_int_equal(atomic_load(&node->slots[1].state), RK_SLOT_DONE);
    kill(pid, SIGKILL);
    unit_reap(pid);
    assert_int_equal(rk_node_check_deaths(node), 0); /* left in order before */
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

static void thread_ended_then_killed(void **state)
{
    struct words *w = words_new();
    pid_t pid;
    struct rk_node *node = node_with_child(w, join_then_end_thread, &pid);

    (void)state;
    assert_int_equal(rk_node_check_deaths(node), 0);
    kill(pid, SIGKILL);
    unit_reap(pid);
    assert_int_equal(rk_node_check_deaths(node), 1);
    assert_true(rk_node_is_dead(node, 1));
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

/* Several check at once while ranks die: each death is counted once in all. */
static int look_until_go(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;
    int index = 1 + atomic_fetch_add(&w->seen, 1);

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK || rk_node_join(node, index, index))
        return 100;
    atomic_fetch_add(&w->ready, 1);
    while (atomic_load(&w->go) == 0)
        rk_node_check_deaths(node);
    rk_node_close(node);
    return 0;
}

static void many_lookers(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        struct words *w = words_new();
        struct rk_node *node;
        pid_t pid[3];

        assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
        assert_int_equal(rk_node_join(node, 0, 0), RANK_OK);
        for (int i = 0; i < 3; i++) {
            pid[i] = unit_spawn(look_until_go, w);
            assert_true(until(&w->ready, i + 1));
        }
        kill(pid[round % 3], SIGKILL);
        unit_reap(pid[round % 3]);
        for (int i = 0; i < 100 && atomic_load(&node->head->deaths) == 0; i++) {
            rk_node_check_deaths(node);
            usleep(1000);
        }
        atomic_store(&w->go, 1);
        for (int i = 0; i < 3; i++) {
            if (i != round % 3)
                assert_int_equal(unit_reap(pid[i]), 0);
        }
        assert_int_equal(rk_node_check_deaths(node), 0);
        assert_int_equal(atomic_load(&node->head->deaths), 1);
        assert_true(rk_node_is_dead(node, 1 + round % 3));
        rk_node_close(node);
        munmap(w, sizeof(*w));
    }
}

/* -------------------------------------------------------------- sleep and wake */

static int sleeper(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK || rk_node_join(node, 1, 1) != RANK_OK)
        return 1;
    rk_node_settle(node);
    atomic_store(&w->ready, 1);
    /* The protocol of the header, round after round: a wake that is lost costs the whole two
     * seconds of a sleep, which the parent sees. */
    for (int i = 1; i <= 2000; i++) {
        while (atomic_load_explicit(&w->go, memory_order_acquire) < i) {
            uint32_t bell = rk_node_sleep_begin(node, RK_ASLEEP_FUTEX);
            if (atomic_load_explicit(&w->go, memory_order_acquire) < i)
                rk_node_sleep(node, bell, 2000000000u);
            rk_node_sleep_end(node);
        }
        atomic_store_explicit(&w->seen, i, memory_order_release);
    }
    rk_node_close(node);
    return 0;
}

static void wake_is_never_lost(void **state)
{
    for (int fence = 0; fence < 2; fence++) {
        struct words *w = words_new();
        pid_t pid;
        struct rk_node *node = node_with_child(w, sleeper, &pid);
        uint64_t worst = 0;

        (void)state;
        if (fence) { /* as on a kernel without membarrier */
            node->fence_on_send = true;
            atomic_store(&node->head->no_membarrier, 1);
        }
        for (int i = 1; i <= 2000; i++) {
            uint64_t t0 = rk_clock_ns(), t;
            /* hit it at all points of falling asleep */
            while (rk_clock_ns() - t0 < (uint64_t)(i % 97) * 300)
                ;
            t0 = rk_clock_ns();
            atomic_store_explicit(&w->go, i, memory_order_release);
            rk_node_wake(node, 1);
            assert_true(until(&w->seen, i));
            t = rk_clock_ns() - t0;
            if (t > worst)
                worst = t;
        }
        assert_int_equal(unit_reap(pid), 0);
        if (worst > 1500000000u)
            fail_msg("a wake was lost: %llu ms", (unsigned long long)worst / 1000000);
        rk_node_close(node);
        munmap(w, sizeof(*w));
    }
}

static int fd_sleeper(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;
    int fd;

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK || rk_node_join(node, 1, 1) != RANK_OK)
        return 1;
    rk_node_settle(node);
    fd = rk_node_bell_fd(node);
    if (fd < 0)
        return 2;
    atomic_store(&w->ready, 1);
    for (int i = 1; i <= 300; i++) {
        while (atomic_load(&w->go) < i) {
            struct pollfd p = {fd, POLLIN, 0};
            char drain[64];
            rk_node_sleep_begin(node, RK_ASLEEP_FD);
            if (atomic_load(&w->go) < i && poll(&p, 1, 2000) == 0)
                return 3; /* no doorbell */
            rk_node_sleep_end(node);
            while (read(fd, drain, sizeof(drain)) > 0)
                ;
        }
        atomic_store(&w->seen, i);
    }
    rk_node_close(node);
    return 0;
}

static void wake_by_descriptor(void **state)
{
    struct words *w = words_new();
    int fds = count_fds();
    pid_t pid;
    struct rk_node *node = node_with_child(w, fd_sleeper, &pid);

    (void)state;
    for (int i = 1; i <= 300; i++) {
        uint64_t t0 = rk_clock_ns();
        while (rk_clock_ns() - t0 < (uint64_t)(i % 31) * 3000)
            ;
        atomic_store(&w->go, i);
        rk_node_wake(node, 1);
        if (!until(&w->seen, i))
            break;
    }
    assert_int_equal(unit_reap(pid), 0);
    rk_node_close(node);
    assert_int_equal(count_fds(), fds);
    munmap(w, sizeof(*w));
}

/* A death wakes the sleepers, without a frame. */
static int sleep_until_death(void *arg)
{
    struct words *w = arg;
    struct rk_node *node;

    if (rk_node_attach(&w->card, RANKS, &node) != RANK_OK || rk_node_join(node, 2, 2) != RANK_OK)
        return 1;
    rk_node_settle(node);
    atomic_store(&w->seen, 1);
    while (!rk_node_is_dead(node, 1)) {
        uint32_t bell = rk_node_sleep_begin(node, RK_ASLEEP_FUTEX);
        if (!rk_node_is_dead(node, 1))
            rk_node_sleep(node, bell, 10000000000u);
        rk_node_sleep_end(node);
    }
    atomic_store(&w->when, rk_clock_ns());
    rk_node_close(node);
    return 0;
}

static void death_wakes(void **state)
{
    struct words *w = words_new();
    pid_t victim, other;
    struct rk_node *node = node_with_child(w, join_and_wait, &victim);
    uint64_t t0;

    (void)state;
    other = unit_spawn(sleep_until_death, w);
    assert_true(until(&w->seen, 1));
    usleep(20000);
    kill(victim, SIGKILL);
    unit_reap(victim);
    t0 = rk_clock_ns();
    assert_int_equal(rk_node_check_deaths(node), 1);
    assert_int_equal(unit_reap(other), 0);
    assert_true(atomic_load(&w->when) - t0 < 1000000000u);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

/* ------------------------------------------------------------------- no memory */

/* In a child, which lowers its own limits. */
static int limited(void *arg)
{
    struct rlimit l = {1 << 20, 1 << 20};
    struct rk_memfd_card card;
    struct rk_node *node;
    size_t huge[RK_REGION_COUNT] = {(size_t)64 << 20, 0};
    int which = *(int *)arg;

    static struct unit_stderr said;

    rk_log_threshold = -1;
    if (which == 1) /* RLIMIT_FSIZE kills an unprepared process by a signal */
        setrlimit(RLIMIT_FSIZE, &l);
    if (which == 2) {
        l.rlim_cur = l.rlim_max = 40 << 20;
        setrlimit(RLIMIT_AS, &l);
    }
    if (which == 3) { /* no descriptor left */
        l.rlim_cur = l.rlim_max = 3;
        setrlimit(RLIMIT_NOFILE, &l);
        return rk_node_create(RANKS, huge, &node, &card) == RANK_ERR_SYSTEM ? 0 : 1;
    }
    if (which == 4) { /* sparse is fine, backing all of it is not: more than the machine has */
        huge[0] = (size_t)1 << 42;
        if (rk_node_create(RANKS, huge, &node, &card) != RANK_OK)
            return 2;
        if (rk_node_commit(node, RK_REGION_FIFOS, 0, huge[0]) != RANK_ERR_NO_MEMORY)
            return 3;
        if (rk_node_commit(node, RK_REGION_FIFOS, 4096, 4096) != RANK_OK)
            return 4;
        rk_log_threshold = RK_LOG_ERROR;
        unit_stderr_begin(&said);
        if (rk_node_try_commit(node, RK_REGION_FIFOS, 0, huge[0]) || !rk_node_try_commit(node, RK_REGION_FIFOS, 4096, 4096))
            return 5;
        if (*unit_stderr_end(&said))
            return 6;
        memset(rk_node_at(node, RK_REGION_FIFOS, 4096), 1, 4096);
        rk_node_close(node);
        return 0;
    }
    return rk_node_create(RANKS, huge, &node, &card) == RANK_ERR_NO_MEMORY ? 0 : 1;
}

static void no_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    int skip = 2; /* a sanitizer needs the address space itself */
#else
    int skip = 0;
#endif
    for (int which = 1; which <= 4; which++) {
        if (which != skip)
            assert_int_equal(unit_reap(unit_spawn(limited, &which)), 0);
    }
}

static int given_up = -1; /* how often a signal ended a call; -1: none comes */

/* The library's calls come by here. An older kernel ends a long one at each signal, and takes back what it has got. */
int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    if (given_up >= 0 && bytes > 8 << 20) {
        assert_int_not_equal(++given_up, 100);
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}

static void backed_under_signals(void **state)
{
    const size_t from = 3 * 4096, bytes = (40 << 20) + 4096;
    int fd = memfd_create("signals", MFD_CLOEXEC);
    struct stat st;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 64 << 20), 0);
    given_up = 0;
    assert_int_equal(rk_memfd_commit(fd, from, bytes, RK_LOG_ERROR, "a test"), RANK_OK);
    given_up = -1;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true((size_t)st.st_blocks * 512 >= bytes);
    close(fd);
}

/* Nothing of it has a name in any file system. */
static void leaves_nothing(void **state)
{
    struct words *w = words_new();
    struct rk_node *node;
    char link[256], path[64];
    ssize_t n;

    (void)state;
    assert_int_equal(rk_node_create(RANKS, regions, &node, &w->card), RANK_OK);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", node->fd);
    n = readlink(path, link, sizeof(link) - 1);
    assert_true(n > 0);
    link[n] = '\0';
    assert_contains(link, "(deleted)");
    assert_int_equal(fcntl(node->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    rk_node_close(node);
    munmap(w, sizeof(*w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(make_and_attach), cmocka_unit_test(not_ours), cmocka_unit_test(another_user), cmocka_unit_test(shared_cores),
        cmocka_unit_test(killed),          cmocka_unit_test(stopped),
        cmocka_unit_test(thread_ended),    cmocka_unit_test(thread_ended_then_killed),
        cmocka_unit_test(many_lookers),    cmocka_unit_test(wake_is_never_lost),
        cmocka_unit_test(wake_by_descriptor), cmocka_unit_test(death_wakes),
        cmocka_unit_test(no_memory),       cmocka_unit_test(leaves_nothing),
        cmocka_unit_test(found_by_looks),  cmocka_unit_test(backed_under_signals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
