/* SPDX-License-Identifier: BSD-3-Clause */
/* xpmem.c: attach other processes' memory by XPMEM. */
#include "lib/node/xpmem.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* As in <xpmem.h>, which is not needed for building. */
struct xpmem_addr {
    int64_t apid;
    off_t offset;
};
enum { XPMEM_RDWR = 2, XPMEM_PERMIT_MODE = 1 };

static struct {
    const char *why; /* reason why it is not used; NULL: it is */
    int64_t name;    /* of this process's memory, */
    pid_t pid;       /* but not of its children's */
    int64_t (*make)(void *at, size_t bytes, int type, void *value);
    int64_t (*get)(int64_t name, int flags, int type, void *value);
    int (*release)(int64_t apid);
    void *(*attach)(struct xpmem_addr addr, size_t bytes, void *at);
    int (*detach)(void *at);
} lib;

/*
 * Maximum attached ranges of a process; the least recently used is detached. Ranges are rounded to GRAIN, so that
 * buffers of one array share a few; gaps need not be mapped at the owner.
 */
enum { RANGES = 32 };
#define GRAIN ((uint64_t)4 << 20)

struct range {
    uint64_t at, used; /* address there; count of the last use */
    size_t bytes;      /* 0: none */
    char *here;
};

struct rk_xpmem {
    int64_t apid;
    uint64_t count;
    struct range *now; /* set by rk_xpmem_begin */
    struct range range[RANGES];
};

/* ------------------------------------------------------------------- SIGBUS */

/* The copy of this thread. */
static _Thread_local struct {
    char *at;
    size_t bytes;
    bool lost;
} guard;

static struct sigaction before;
static int opened; /* number of attached processes; the handler is installed while it is not 0 */
static pthread_mutex_t handler_lock = PTHREAD_MUTEX_INITIALIZER;

/* Map zeros over a vanished page and all behind it: the copy ends, and its result is discarded. */
static void on_bus(int sig, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)info->si_addr & ~(page - 1);
    uintptr_t from = (uintptr_t)guard.at, end = (from + guard.bytes + page - 1) & ~(page - 1);

    if (guard.at && at >= (from & ~(page - 1)) && at < end &&
        mmap((void *)at, end - at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
             -1, 0) != MAP_FAILED) {
        guard.lost = true;
        return;
    }
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(sig, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(sig);
    else if (before.sa_handler == SIG_DFL || info->si_code > 0) {
        signal(sig, SIG_DFL); /* the access is repeated */
        if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO)
            raise(sig); /* no earlier handler */
    }
}

static void handler_on(void)
{
    struct sigaction ours = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    pthread_mutex_lock(&handler_lock);
    if (opened++ == 0)
        sigaction(SIGBUS, &ours, &before);
    pthread_mutex_unlock(&handler_lock);
}

/* The program may have replaced the handler. */
static bool stands(void)
{
    struct sigaction now;

    return sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus;
}

/* If a thread blocks SIGBUS, the kernel would end the process. */
static bool is_guarded(void)
{
    sigset_t set;

    return stands() && pthread_sigmask(SIG_BLOCK, NULL, &set) == 0 && !sigismember(&set, SIGBUS);
}

static void handler_off(void)
{
    pthread_mutex_lock(&handler_lock);
    if (--opened == 0 && stands())
        sigaction(SIGBUS, &before, NULL);
    pthread_mutex_unlock(&handler_lock);
}

/* -------------------------------------------------------------------------- ranges */

/* lost: a part was replaced by on_bus, which the module ignores. */
static void xpmem_drop(struct range *r, bool lost)
{
    if (r->bytes && lost)
        munmap(r->here, r->bytes);
    else if (r->bytes)
        lib.detach(r->here);
    memset(r, 0, sizeof(*r));
}

static bool xpmem_attach(struct rk_xpmem *x, struct range *r, uint64_t at, size_t bytes)
{
    void *here = lib.attach((struct xpmem_addr){x->apid, (off_t)at}, bytes, NULL);

    if (!here || here == MAP_FAILED)
        return false;
    *r = (struct range){.at = at, .bytes = bytes, .here = here};
    return true;
}

/* A range that holds all of it; NULL: it cannot be attached. */
static struct range *range_of(struct rk_xpmem *x, uint64_t at, size_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = at & ~(GRAIN - 1), end = at + bytes;
    struct range *r, *oldest = x->range, got;

    if (end < at || end > INT64_MAX - GRAIN)
        return NULL;
    for (r = x->range; r < x->range + RANGES; r++) {
        if (at >= r->at && end <= r->at + r->bytes) {
            r->used = ++x->count;
            return r;
        }
        if (r->used < oldest->used)
            oldest = r;
    }
    if (!xpmem_attach(x, &got, first, rk_round_up(end, GRAIN) - first)) {
        first = at & ~(page - 1);
        if (!xpmem_attach(x, &got, first, rk_round_up(end, page) - first))
            return NULL;
    }
    xpmem_drop(oldest, false);
    got.used = ++x->count;
    *oldest = got;
    return oldest;
}

struct rk_xpmem *rk_xpmem_open(int64_t name)
{
    int64_t apid = lib.get(name, XPMEM_RDWR, XPMEM_PERMIT_MODE, NULL);
    struct rk_xpmem *x = apid < 0 ? NULL : calloc(1, sizeof(*x));

    if (x) {
        x->apid = apid;
        handler_on();
    } else if (apid >= 0) {
        lib.release(apid);
    }
    return x;
}

void rk_xpmem_close(struct rk_xpmem *x)
{
    if (!x)
        return;
    for (int i = 0; i < RANGES; i++)
        xpmem_drop(&x->range[i], false);
    lib.release(x->apid);
    handler_off();
    free(x);
}

char *rk_xpmem_begin(struct rk_xpmem *x, uint64_t at, size_t bytes)
{
    if (!x || !is_guarded() || !(x->now = range_of(x, at, bytes)))
        return NULL;
    guard.lost = false;
    guard.bytes = bytes;
    guard.at = x->now->here + (at - x->now->at);
    atomic_signal_fence(memory_order_seq_cst);
    return guard.at;
}

bool rk_xpmem_end(struct rk_xpmem *x)
{
    atomic_signal_fence(memory_order_seq_cst);
    guard.at = NULL;
    if (rk_likely(!guard.lost))
        return true;
    xpmem_drop(x->now, true);
    return false;
}

bool rk_xpmem_read(struct rk_xpmem *x, void *to, uint64_t from, size_t bytes)
{
    const char *here = rk_xpmem_begin(x, from, bytes);

    if (!here)
        return false;
    memcpy(to, here, bytes);
    return rk_xpmem_end(x);
}

bool rk_xpmem_write(struct rk_xpmem *x, uint64_t to, const void *from, size_t bytes)
{
    char *here = rk_xpmem_begin(x, to, bytes);

    if (!here)
        return false;
    memcpy(here, from, bytes);
    return rk_xpmem_end(x);
}

/* ------------------------------------------------------------------------ the module */

/* Test: writes are visible both ways, and a page that its owner has unmapped and mapped again is seen anew. */
static bool follows(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *mine = aligned_alloc(page, 2 * page), *here;
    struct rk_xpmem *x = mine ? rk_xpmem_open(lib.name) : NULL;
    volatile char *m = mine, *h;
    bool ok = false;

    if (x) {
        m[0] = 1;
        h = here = rk_xpmem_begin(x, (uint64_t)(uintptr_t)mine, page);
        if (here) {
            ok = h[0] == 1 && madvise(mine, page, MADV_DONTNEED) == 0;
            m[0] = 2;
            ok = ok && h[0] == 2;
            h[1] = 3;
            ok = ok && m[1] == 3;
            ok = rk_xpmem_end(x) && ok;
        }
    }
    rk_xpmem_close(x);
    free(mine);
    return ok;
}

/* Once a process: libxpmem cannot close the device. */
static void find_it(void)
{
    bool named = strchr(rk_conf.xpmem, '/') != NULL;
    void *dl;

    lib.why = "no /dev/xpmem";
    if (!named && access("/dev/xpmem", R_OK | W_OK))
        return;
    lib.why = "no libxpmem.so.0";
    dl = dlopen(named ? rk_conf.xpmem : "libxpmem.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!dl)
        return;
    *(void **)&lib.make = dlsym(dl, "xpmem_make");
    *(void **)&lib.get = dlsym(dl, "xpmem_get");
    *(void **)&lib.release = dlsym(dl, "xpmem_release");
    *(void **)&lib.attach = dlsym(dl, "xpmem_attach");
    *(void **)&lib.detach = dlsym(dl, "xpmem_detach");
    lib.why = "libxpmem lacks a call";
    if (lib.make && lib.get && lib.release && lib.attach && lib.detach) {
        lib.pid = getpid();
        /* All memory, for processes of this user. */
        lib.name = lib.make(NULL, SIZE_MAX, XPMEM_PERMIT_MODE, (void *)(uintptr_t)0600);
        lib.why = lib.name <= 0 ? "the module refuses to share memory"
                  : !follows()  ? "attached memory does not follow its owner's pages"
                                : NULL;
        if (!lib.why)
            return;
    }
    dlclose(dl);
}

bool rk_xpmem_works(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (strcmp(rk_conf.xpmem, "off") == 0) {
        *why = "RANK_XPMEM=off";
        return false;
    }
    pthread_once(&once, find_it);
    if (lib.why)
        *why = lib.why;
    else if (lib.pid != getpid())
        *why = "the parent of this process has it";
    return !lib.why && lib.pid == getpid();
}

int64_t rk_xpmem_name(void)
{
    const char *why;

    return rk_xpmem_works(&why) ? lib.name : 0;
}

void rk_xpmem_offer(struct rk_node *node)
{
    int64_t name;

    if (rk_likely(atomic_load_explicit(&node->mine->memory, memory_order_relaxed)))
        return;
    name = rk_xpmem_name();
    atomic_store(&node->mine->memory, name ? name : -1);
}

struct rk_xpmem *rk_xpmem_of(const struct rk_node *node, int index)
{
    int64_t name = atomic_load(&node->slots[index].memory);

    return name > 0 && rk_xpmem_name() ? rk_xpmem_open(name) : NULL;
}
