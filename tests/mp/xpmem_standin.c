/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xpmem_standin.c: stand in for libxpmem and the kernel's module.
 * It is preloaded into ranks, and RANK_XPMEM names it.
 *
 * Memory blocks of a page and more come from one file of the process's own, all of it mapped: malloc and anonymous mmap
 * are ours. A peer that attaches them maps the same file, so that an attachment really shows the other's memory, and
 * goes on showing it when blocks are freed and taken again. All other memory cannot be attached, as if the module refused.
 *
 *   STANDIN_LOG=FILE   a line at the end: how many were attached, refused, and how many calls were for ranges that it had
 *   STANDIN_REFUSE=N   each N-th is refused, though it could be had
 *   STANDIN_STALE=yes  what is attached of one's own is a copy: a module that does not follow pages
 *
 * xpmem_standin_cut(1): the next attachment loses its owner, which is killed, and its pages. (2): its pages alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };
#define ARENA ((size_t)8 << 30)

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* ------------------------------------------------------------------------ the memory */

/* First in the file: where its owner has it, and under which descriptor. */
static struct arena {
    char *base;
    int fd;
} *arena;
static char *fresh;             /* what was never taken begins here */
static void *freed[64];         /* by the power of two that they have */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool child;              /* of a fork: what its parent took is not its to free, and it takes from the upper half */

static void in_child(void)
{
    child = true;
    fresh = arena->base + ARENA / 2;
    memset(freed, 0, sizeof(freed));
}

/* At the process's first large block. */
static bool ready(void)
{
    char *base;
    int fd, high;

    if (arena)
        return true;
    fd = memfd_create("standin", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)ARENA))
        return false;
    high = fcntl(fd, F_DUPFD_CLOEXEC, 200); /* where no program searches one */
    close(fd);
    base = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, high, 0);
    if (high < 0 || base == MAP_FAILED)
        return false;
    arena = (struct arena *)(void *)base;
    *arena = (struct arena){base, high};
    fresh = base + PAGE;
    pthread_atfork(NULL, NULL, in_child);
    return true;
}

static bool is_ours(const void *p)
{
    return arena && (const char *)p > (const char *)arena && (const char *)p < (const char *)arena + ARENA;
}

/* Each has a page before it that holds its size. */
static int order_of(const void *p)
{
    return *(const int *)(const void *)((const char *)p - PAGE);
}

static void *take(size_t bytes, bool zeroed)
{
    int order = 12;
    void *p = NULL;

    if (bytes < PAGE || bytes > ARENA / 4)
        return NULL;
    while ((size_t)1 << order < bytes)
        order++;
    pthread_mutex_lock(&lock);
    if (ready()) {
        if ((p = freed[order]) != NULL) {
            memcpy(&freed[order], p, sizeof(void *));
            if (zeroed)
                memset(p, 0, bytes);
        } else if ((size_t)(arena->base + ARENA - fresh) > PAGE + ((size_t)1 << order)) {
            p = fresh + PAGE;
            *(int *)(void *)fresh = order;
            fresh += PAGE + ((size_t)1 << order);
            /* A mapping of its own for the first page: a block that lay in one would be mapped like other shared memory. */
            madvise(p, PAGE, MADV_DONTDUMP);
        }
    }
    pthread_mutex_unlock(&lock);
    return p;
}

static void give(void *p)
{
    int order = order_of(p);

    if (child && (char *)p < arena->base + ARENA / 2)
        return;
    pthread_mutex_lock(&lock);
    memcpy(p, &freed[order], sizeof(void *));
    freed[order] = p;
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t bytes)
{
    void *p = take(bytes, false);

    return p ? p : __libc_malloc(bytes);
}

void free(void *p)
{
    if (is_ours(p))
        give(p);
    else
        __libc_free(p);
}

void *calloc(size_t n, size_t each)
{
    void *p = each && n > SIZE_MAX / each ? NULL : take(n * each, true);

    return p ? p : __libc_calloc(n, each);
}

void *realloc(void *old, size_t bytes)
{
    size_t had;
    void *p;

    if (!is_ours(old))
        return __libc_realloc(old, bytes);
    had = (size_t)1 << order_of(old);
    if (bytes <= had)
        return old;
    p = malloc(bytes);
    if (p) {
        memcpy(p, old, had);
        free(old);
    }
    return p;
}

static void *aligned(size_t align, size_t bytes)
{
    void *p = align <= PAGE ? take(bytes, false) : NULL;

    return p ? p : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return aligned(align, bytes);
}

void *memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes)
{
    return aligned(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    *out = aligned(align, bytes);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    void *p = NULL;

    if (!at && (flags & MAP_ANONYMOUS) && (flags & MAP_PRIVATE) && !(flags & MAP_NORESERVE) &&
        prot == (PROT_READ | PROT_WRITE) && bytes >= (1 << 20))
        p = take(bytes, true);
    return p ? p : (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset); // NOLINT
}

/* What is attached here. */
static struct {
    void *at;
    size_t bytes;
} known[4096];
static int attached;

static bool forget(void *at)
{
    for (size_t i = 0; at && i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].at == at) {
            syscall(SYS_munmap, at, known[i].bytes);
            known[i].at = NULL;
            attached--;
            return true;
        }
    }
    return false;
}

int munmap(void *at, size_t bytes)
{
    if (is_ours(at))
        give(at);
    else if (!forget(at))
        return (int)syscall(SYS_munmap, at, bytes);
    return 0;
}

/* ------------------------------------------------------------------------ the module */

struct xpmem_addr {
    int64_t apid;
    off_t offset;
};

int64_t xpmem_make(void *at, size_t bytes, int type, void *mode);
int64_t xpmem_get(int64_t segid, int flags, int type, void *mode);
int xpmem_release(int64_t apid);
void *xpmem_attach(struct xpmem_addr addr, size_t bytes, void *at);
int xpmem_detach(void *at);
void xpmem_standin_cut(int how);
int xpmem_standin_attached(void);
int xpmem_standin_had(void);

static int refused, had, calls, cut;

void xpmem_standin_cut(int how)
{
    cut = how;
}

/* Now, and ever. */
int xpmem_standin_attached(void)
{
    return attached;
}

int xpmem_standin_had(void)
{
    return had;
}

__attribute__((destructor)) static void report(void)
{
    const char *file = getenv("STANDIN_LOG");
    FILE *f = file && had + refused > 0 && !child ? fopen(file, "a") : NULL;

    if (f) {
        fprintf(f, "had %d refused %d left %d\n", had, refused, attached);
        fclose(f);
    }
}

/* The name is the process and its descriptor. */
int64_t xpmem_make(void *at, size_t bytes, int type, void *mode)
{
    bool ok;

    (void)type;
    pthread_mutex_lock(&lock);
    ok = !at && bytes == SIZE_MAX && mode == (void *)0600 && ready();
    pthread_mutex_unlock(&lock);
    return ok ? (int64_t)arena->fd << 32 | getpid() : -1;
}

int64_t xpmem_get(int64_t segid, int flags, int type, void *mode)
{
    (void)type;
    (void)mode;
    return flags == 2 && kill((pid_t)(segid & INT_MAX), 0) == 0 ? segid : -1;
}

int xpmem_release(int64_t apid)
{
    return apid > 0 ? 0 : -1;
}

static void *entered(void *at, size_t bytes)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (!known[i].at) {
            known[i].at = at;
            known[i].bytes = bytes;
            attached++;
            had++;
            return at;
        }
    }
    abort();
}

/* Where it is in state Z, its memory has gone. */
static void wait_for_end(pid_t pid)
{
    char name[64], line[256], *end;

    snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
    for (;;) {
        FILE *f = fopen(name, "r");
        bool gone = !f || !fgets(line, sizeof(line), f) || !(end = strrchr(line, ')')) || end[2] == 'Z' || end[2] == 'X';

        if (f)
            fclose(f);
        if (gone)
            return;
        usleep(1000);
    }
}

/* A file that has no page for what lies outside: SIGBUS, as the module has it. */
void *xpmem_attach(struct xpmem_addr addr, size_t bytes, void *at)
{
    static const char *refuse, *stale;
    pid_t pid = (pid_t)(addr.apid & INT_MAX);
    struct arena a;
    char name[64], *base, *p;
    size_t skip = 0, n;
    int fd;

    if (!refuse)
        refuse = getenv("STANDIN_REFUSE") ? getenv("STANDIN_REFUSE") : "0";
    if (!stale)
        stale = getenv("STANDIN_STALE") ? getenv("STANDIN_STALE") : "";
    if (at || (addr.offset & (PAGE - 1)) || (bytes & (PAGE - 1)) || !bytes)
        return (void *)-1; // NOLINT
    snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, (int)(addr.apid >> 32));
    fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, &a, sizeof(a), 0) != sizeof(a)) {
        if (fd >= 0)
            close(fd);
        refused++;
        return (void *)-1; // NOLINT
    }
    base = a.base;
    p = (char *)(uintptr_t)addr.offset; // NOLINT
    /* What begins before the arena, or ends behind it, has nothing there. */
    if (p < base)
        skip = (size_t)(base - p);
    n = p + bytes > base + ARENA ? (size_t)(base + ARENA - p) : bytes;
    if (p >= base + ARENA || skip >= n || (atoi(refuse) && ++calls % atoi(refuse) == 0)) {
        close(fd);
        refused++;
        return (void *)-1; // NOLINT
    }
    at = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, ARENA); // NOLINT
    if (at == MAP_FAILED || syscall(SYS_mmap, (char *)at + skip, n - skip, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                                    (off_t)(p + skip - base)) == -1)
        abort();
    if (*stale && pid == getpid()) {
        syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
        memcpy((char *)at + skip, p + skip, PAGE);
    }
    if (cut == 1) {
        kill(pid, SIGKILL);
        wait_for_end(pid);
    }
    if (cut) /* as if they were gone: behind the file's end */
        syscall(SYS_mmap, (char *)at + skip + (n - skip) / 2 / PAGE * PAGE, bytes - skip - (n - skip) / 2 / PAGE * PAGE,
                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, ARENA);
    cut = 0;
    close(fd);
    return entered(at, bytes);
}

int xpmem_detach(void *at)
{
    return forget(at) ? 0 : -1;
}
