/* SPDX-License-Identifier: BSD-3-Clause */
/* status_board.c: see status_board.h. */
#include "launcher/monitor/status_board.h"
#include "launcher/util/shell_words.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

bool xr_agent_board_open(struct xr_agent_board *b, uint32_t slots)
{
    size_t bytes = rk_board_bytes(slots);
    struct rlimit limit;
    void *map;
    int fd;

    *b = (struct xr_agent_board){.fd = -1};
    /* Above the limit the kernel would send SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
        return false;
    fd = memfd_create("xrun-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* Allocate now: a rank that writes there must not get SIGBUS for want of memory. */
    if (fd < 0 || ftruncate(fd, (off_t)bytes) || fallocate(fd, 0, 0, (off_t)bytes) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        close(fd);
        return false;
    }
    *b = (struct xr_agent_board){.fd = fd, .bytes = bytes, .head = map};
    b->slots = (struct rk_board_slot *)(b->head + 1);
    b->head->magic = RK_BOARD_MAGIC;
    b->head->nonce = rk_clock_ns() ^ (uint64_t)getpid() << 40;
    b->head->slots = slots;
    b->head->slot_bytes = sizeof(struct rk_board_slot);
    return true;
}

void xr_agent_board_close(struct xr_agent_board *b)
{
    if (!b->head)
        return;
    munmap(b->head, b->bytes);
    close(b->fd);
    *b = (struct xr_agent_board){.fd = -1};
}

/* ------------------------------------------------------------------------ as text */

struct text_buffer {
    char *at;
    size_t left;
};

static void status_board_add(struct text_buffer *t, const char *fmt, ...) RK_PRINTF(2, 3);

static void status_board_add(struct text_buffer *t, const char *fmt, ...)
{
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(t->at, t->left, fmt, ap);
    va_end(ap);
    if (n < 0 || t->left == 0)
        return;
    if ((size_t)n >= t->left)
        n = (int)t->left - 1;
    t->at += n;
    t->left -= (size_t)n;
}

/* Add a run of ranks of this job, or of another (negative numbers). Returns the index behind it. */
static uint32_t add_run(struct text_buffer *t, const int32_t *ranks, uint32_t first, uint32_t listed)
{
    bool foreign = ranks[first] < 0;
    int64_t step = foreign ? -1 : 1;
    uint32_t i = first;

    while (i < listed && (ranks[i] < 0) == foreign) {
        uint32_t last = i;
        while (last + 1 < listed && ranks[last + 1] == ranks[last] + step)
            last++;
        if (last < i + 2) /* two are no range */
            last = i;
        status_board_add(t, last > i ? "%s%" PRId64 "-%" PRId64 : "%s%" PRId64, i > first ? "," : "",
            foreign ? -1 - (int64_t)ranks[i] : ranks[i], foreign ? -1 - (int64_t)ranks[last] : ranks[last]);
        i = last + 1;
    }
    if (foreign)
        status_board_add(t, " of another job");
    return i;
}

static void add_ranks(struct text_buffer *t, const int32_t *ranks, uint32_t listed, uint32_t n)
{
    if (listed > n)
        listed = n;
    for (uint32_t i = 0; i < listed;) {
        if (i)
            status_board_add(t, ", ");
        i = add_run(t, ranks, i, listed);
    }
    if (n > listed)
        status_board_add(t, " and %u more", n - listed);
}

void xr_status_board_ranks_text(const int32_t *ranks, uint32_t listed, uint32_t n, char *out, size_t len)
{
    struct text_buffer t = {out, len};

    *out = '\0';
    add_ranks(&t, ranks, listed, n);
}

static void add_team(struct text_buffer *t, const struct rk_wait_for *w)
{
    char team[80];

    rk_board_team_text(w->team, w->team_size, team, sizeof(team));
    status_board_add(t, " on %s", team);
}

void xr_status_board_wait_text(const struct rk_wait_for *w, char *out, size_t len)
{
    struct text_buffer t = {out, len};

    *out = '\0';
    status_board_add(&t, "%s", w->call);
    if (w->number)
        status_board_add(&t, " #%" PRIu64, w->number);
    if (w->flags & RK_WAIT_BYTES)
        status_board_add(&t, " of %" PRIu64 " byte%s", w->bytes, xr_plural(w->bytes));
    if (w->flags & RK_WAIT_TEAM)
        add_team(&t, w);
    if (w->flags & RK_WAIT_TAG)
        status_board_add(&t, ", tag %" PRIu64, w->tag);
    else if (w->flags & RK_WAIT_ANY_TAG)
        status_board_add(&t, ", any tag");
    if (w->flags & RK_WAIT_ANY_SOURCE) {
        status_board_add(&t, ", waits for any rank");
    } else if (w->npeers) {
        status_board_add(&t, ", waits for %s ", w->npeers == 1 ? "rank" : "ranks");
        add_ranks(&t, w->peers, RK_BOARD_PEERS, w->npeers);
    }
}
