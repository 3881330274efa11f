/* SPDX-License-Identifier: BSD-3-Clause */
/* status_page.c: write and read the status page. */
#include "lib/base/status_page.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORDS (sizeof(struct rk_wait_for) / 8)

/* ------------------------------------------------------------------ rank */

/* Memory that cannot shrink: writing to it never raises SIGBUS. */
static bool is_sealed_memory(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* Opening another process's descriptor may have side effects (FIFO, device): check its type first. */
static bool is_memory_path(const char *path)
{
    char link[32];
    ssize_t n = readlink(path, link, sizeof(link) - 1);

    return n > 7 && strncmp(link, "/memfd:", 7) == 0;
}

static bool map_board(struct rk_board *b, const char *path, uint64_t nonce, uint32_t slot)
{
    const struct rk_board_head *head;
    struct stat st;
    int fd = is_memory_path(path) ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;

    if (fd < 0)
        return false;
    if (!is_sealed_memory(fd) || fstat(fd, &st) ||
        (size_t)st.st_size < sizeof(struct rk_board_head)) {
        close(fd);
        return false;
    }
    b->bytes = (size_t)st.st_size;
    b->map = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (b->map == MAP_FAILED)
        return false;
    head = b->map;
    if (head->magic != RK_BOARD_MAGIC || head->nonce != nonce ||
        head->slot_bytes != sizeof(struct rk_board_slot) || slot >= head->slots ||
        b->bytes < rk_board_bytes(head->slots)) {
        munmap(b->map, b->bytes);
        return false;
    }
    b->mine = (struct rk_board_slot *)((char *)b->map + sizeof(*head)) + slot;
    return true;
}

struct rk_board *rk_board_open(const char *where)
{
    struct rk_board *b;
    uint64_t nonce;
    uint32_t slot;
    char path[64];
    int pid, fd, end = 0;

    if (!where || !*where)
        return NULL;
    if (sscanf(where, "%d:%d:%" SCNx64 ":%" SCNu32 "%n", &pid, &fd, &nonce, &slot, &end) != 4 ||
        where[end] || pid <= 0 || fd < 0) {
        rk_debug("%s is '%s': no status board", RK_BOARD_VARIABLE, where);
        return NULL;
    }
    b = calloc(1, sizeof(*b));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    if (!b || !map_board(b, path, nonce, slot)) {
        rk_debug("%s cannot be mapped: no status board", path);
        free(b);
        return NULL;
    }
    atomic_store_explicit(&b->mine->pid, (uint32_t)getpid(), memory_order_relaxed);
    return b;
}

uint32_t rk_board_join(struct rk_board *b)
{
    return atomic_fetch_add_explicit(&b->mine->joined, 1, memory_order_relaxed);
}

void rk_board_close(struct rk_board *b)
{
    if (!b)
        return;
    munmap(b->map, b->bytes);
    free(b);
}

void rk_board_write(struct rk_board *b, enum rk_board_state state, uint64_t since_ns,
                    const struct rk_wait_for *what)
{
    struct rk_board_slot *s = b->mine;
    uint32_t turn = atomic_load_explicit(&s->turn, memory_order_relaxed) | 1;
    uint64_t word[WORDS];

    atomic_store_explicit(&s->turn, turn, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&s->state, state, memory_order_relaxed);
    atomic_store_explicit(&s->since_ns, since_ns, memory_order_relaxed);
    atomic_store_explicit(&s->begun_ns, b->begun_ns, memory_order_relaxed);
    atomic_store_explicit(&s->until_ns, b->until_ns, memory_order_relaxed);
    if (what) {
        memcpy(word, what, sizeof(word));
        for (size_t i = 0; i < WORDS; i++)
            atomic_store_explicit(&s->what[i], word[i], memory_order_relaxed);
    }
    atomic_store_explicit(&s->turn, turn + 1, memory_order_release);
}

/* -------------------------------------------------------------- launcher */

void rk_board_where(char *out, size_t len, int pid, int fd, uint64_t nonce, uint32_t slot)
{
    snprintf(out, len, "%d:%d:%" PRIx64 ":%" PRIu32, pid, fd, nonce, slot);
}

/* Sanitize what a rank wrote, for printing. */
static bool tidy(struct rk_board_view *v)
{
    struct rk_wait_for *w = &v->what;

    if (v->state > RK_BOARD_LEFT)
        return false;
    if (w->npeers > INT32_MAX)
        w->npeers = INT32_MAX;
    w->call[RK_BOARD_CALL - 1] = '\0';
    for (char *c = w->call; *c; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
    return true;
}

bool rk_board_read(const struct rk_board_slot *s, struct rk_board_view *out)
{
    uint64_t word[WORDS], until;

    for (int tries = 0; tries < 100; tries++) {
        uint32_t turn = atomic_load_explicit(&s->turn, memory_order_acquire);
        if (turn & 1) {
            rk_cpu_relax();
            continue;
        }
        out->state = (enum rk_board_state)atomic_load_explicit(&s->state, memory_order_relaxed);
        out->pid = atomic_load_explicit(&s->pid, memory_order_relaxed);
        out->since_ns = atomic_load_explicit(&s->since_ns, memory_order_relaxed);
        out->begun_ns = atomic_load_explicit(&s->begun_ns, memory_order_relaxed);
        until = atomic_load_explicit(&s->until_ns, memory_order_relaxed);
        out->refused = atomic_load_explicit(&s->refused, memory_order_relaxed);
        for (size_t i = 0; i < WORDS; i++)
            word[i] = atomic_load_explicit(&s->what[i], memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&s->turn, memory_order_relaxed) != turn)
            continue;
        memcpy(&out->what, word, sizeof(out->what));
        if (out->state == RK_BOARD_WAITING && until && until < rk_clock_ns())
            out->state = RK_BOARD_IN;
        return tidy(out);
    }
    return false;
}

/* ------------------------------------------------------------------ both */

void rk_board_team_text(uint64_t id, uint32_t size, char *out, size_t len)
{
    const char *s = size == 1 ? "" : "s";

    if (id == 0)
        snprintf(out, len, "world");
    else if (id >> 62) /* a random number: lib/p2p/team.h */
        snprintf(out, len, "a team of several worlds (%u rank%s)", size, s);
    else
        snprintf(out, len, "team %u of rank %u (%u rank%s)", (uint32_t)id, (uint32_t)(id >> 32), size, s);
}
