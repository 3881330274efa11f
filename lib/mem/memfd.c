/* SPDX-License-Identifier: BSD-3-Clause */
/* memfd.c: create, map and back anonymous shared memory. */
#include "lib/mem/memfd.h"
#include "lib/base/compiler.h"
#include "lib/base/kept_fds.h"
#include "lib/base/arg_error.h"
#include "lib/base/log.h"
#include "lib/base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "librank"
enum { STEP = 2 << 20 }; /* some hundred microseconds of work; a huge page */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* Not 0, which means none, and even, which marks this kind (see segment.h). */
static bool make_nonce(uint64_t *nonce)
{
    do {
        if (!rk_random_secret(nonce, sizeof(*nonce)))
            return false;
        *nonce &= ~1ull;
    } while (*nonce == 0);
    return true;
}

rank_status_t rk_memfd_create(size_t bytes, const char *what, int *fd, void **base,
                              struct rk_memfd_card *card)
{
    rank_status_t st;
    void *map;
    int f;

    st = rk_mem_check_room(bytes, 4096, RK_LOG_ERROR, what);
    if (st)
        return st;
    if (!make_nonce(&card->nonce))
        return rk_fail(RANK_ERR_SYSTEM, "%s: no random bytes (getrandom, /dev/urandom): %m%s", what, rk_refusal_remedy(errno));
    f = memfd_create(NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (f < 0) {
        st = errno == EMFILE || errno == ENFILE ? RANK_ERR_SYSTEM : RANK_ERR_NO_MEMORY;
        return rk_fail(st, "%s: memfd_create failed: %m%s", what, rk_refusal_remedy(errno));
    }
    if (ftruncate(f, (off_t)bytes) < 0) {
        st = rk_fail(RANK_ERR_NO_MEMORY, "%s: cannot size shared memory to %zu bytes (ftruncate): %m%s", what, bytes,
                     rk_refusal_remedy(errno));
        goto err_close;
    }
    if (fcntl(f, F_ADD_SEALS, SEALS) < 0) {
        st = rk_fail(RANK_ERR_SYSTEM, "%s: cannot seal shared memory (fcntl): %m%s", what, rk_refusal_remedy(errno));
        goto err_close;
    }
    st = rk_memfd_commit(f, 0, 4096 < bytes ? 4096 : bytes, RK_LOG_ERROR, what);
    if (st)
        goto err_close;
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    if (map == MAP_FAILED) {
        rk_fail(RANK_ERR_NO_MEMORY, "%s: cannot map %zu bytes (ulimit -v?): %m", what, bytes);
        st = RANK_ERR_NO_MEMORY;
        goto err_close;
    }
    card->bytes = bytes;
    card->pid = getpid();
    card->fd = f;
    *(uint64_t *)map = card->nonce;
    *fd = f;
    *base = map;
    return RANK_OK;

err_close:
    close(f);
    return st;
}

/* Opening another process's descriptor may have side effects (FIFO, device): check its type first. */
static int is_our_memory_path(const char *path)
{
    char link[64];
    ssize_t n = readlink(path, link, sizeof(link) - 1);

    if (n < 0)
        return 0;
    link[n] = '\0';
    return strncmp(link, "/memfd:" NAME, strlen("/memfd:" NAME)) == 0;
}

bool rk_is_own_process(int pid)
{
    char path[32];
    struct stat sb;

    snprintf(path, sizeof(path), "/proc/%d", pid);
    /* The kernel gives this folder the effective user, also of a process that cannot be dumped. */
    return pid > 0 && stat(path, &sb) == 0 && sb.st_uid == geteuid();
}

/* The memory itself may be another user's: a process of this user inherits descriptors, as one that is setuid does. */
static bool is_own_and_sealed(int fd, const struct stat *sb)
{
    int seals = fcntl(fd, F_GET_SEALS);

    return sb->st_uid == geteuid() && seals >= 0 && (seals & SEALS) == SEALS;
}

rank_status_t rk_memfd_open(const struct rk_memfd_card *card, int *fd, void **base)
{
    rank_status_t st = RANK_ERR_UNREACHABLE;
    void *map = NULL;
    struct stat sb;
    char path[64];
    int f = -1;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)card->pid, (int)card->fd);
    if (!rk_is_own_process(card->pid) || !is_our_memory_path(path)) {
        rk_debug("%s is not shared memory of a process of this user", path);
    } else if ((f = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK)) < 0) {
        rk_debug("cannot open %s: %m", path);
    } else if (fstat(f, &sb) < 0 || (uint64_t)sb.st_size != card->bytes || !is_own_and_sealed(f, &sb)) {
        rk_debug("%s has another size or owner, or can be truncated", path);
    } else if ((map = mmap(NULL, card->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0)) == MAP_FAILED) {
        rk_fail(RANK_ERR_NO_MEMORY, "cannot map %llu bytes of shared memory (ulimit -v?): %m", (unsigned long long)card->bytes);
        map = NULL;
        st = RANK_ERR_NO_MEMORY;
    } else if (*(volatile uint64_t *)map != card->nonce) {
        rk_debug("%s has another nonce", path);
    } else {
        *fd = f;
        *base = map;
        return RANK_OK;
    }
    rk_memfd_close(f, map, card->bytes);
    return st;
}

rank_status_t rk_memfd_commit(int fd, size_t offset, size_t bytes, int level, const char *what)
{
    rank_status_t st = rk_mem_check_room(offset + bytes, bytes, level, what);
    size_t n;

    /* Older kernels abort a large call on any signal and undo it: under a profiler's timer it would never end. */
    for (; !st && bytes; offset += n, bytes -= n) {
        int rc;
        n = STEP - offset % STEP;
        if (n > bytes)
            n = bytes;
        do
            rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)n);
        while (rc < 0 && errno == EINTR);
        if (rc < 0 && errno == EBADF && rk_kept_fds_closed(what)) {
            st = RANK_ERR_SYSTEM;
        } else if (rc < 0) {
            st = rk_mem_refuse(level, "%s: no memory for %zu shared bytes (fallocate): %m%s", what, bytes,
                               rk_refusal_remedy(errno));
        }
    }
    return st;
}

void rk_memfd_close(int fd, void *base, size_t bytes)
{
    if (base)
        munmap(base, bytes);
    if (fd >= 0)
        close(fd);
}
