/* backend_rank.c: the benchmarks over librank. See backend.h. */
#include "bench/backend.h"

#include "lib/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char be_program[] = "rankbench";

static rank_team_t world;
static int me, size;

struct be_memory {
    rank_mem_t mem;
};

struct be_window {
    rank_mem_t mem;
};

struct be_blocks {
    int64_t *counts, *displs;
};

RK_COLD static void fail(rank_status_t st, const char *call)
{
    char text[256];

    snprintf(text, sizeof(text), "rankbench: %s: %s", call, rank_status_string(st));
    rank_abort(1, text);
}

RK_INLINE void must(rank_status_t st, const char *call)
{
    if (rk_unlikely(st))
        fail(st, call);
}

void be_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    must(rank_init(NULL), "rank_init");
    world = rank_world();
    me = rank_team_rank(world);
    size = rank_team_size(world);
}

void be_finalize(void)
{
    must(rank_finalize(), "rank_finalize");
}

void be_abort(int code, const char *text)
{
    rank_abort(code, text);
}

int be_rank(void)
{
    return me;
}

int be_size(void)
{
    return size;
}

void be_library(char *out, size_t len)
{
    snprintf(out, len, "librank %s", rank_version());
}

const char *be_channel(int peer)
{
    const char *name = rank_channel_name(world, peer);

    return name ? name : "";
}

struct be_memory *be_memory_create(size_t bytes, void **base)
{
    struct be_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        be_abort(1, "rankbench: out of memory");
    if (rank_alloc(world, RANK_MEM_HOST, (int64_t)bytes, 0, base, &memory->mem)) {
        free(memory);
        return NULL;
    }
    return memory;
}

void be_memory_destroy(struct be_memory *memory)
{
    if (!memory)
        return;
    must(rank_free(&memory->mem), "rank_free");
    free(memory);
}

void be_send(const void *buf, size_t bytes, int peer, int tag)
{
    must(rank_send(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world), "rank_send");
}

void be_recv(void *buf, size_t bytes, int peer, int tag)
{
    must(rank_recv(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, NULL), "rank_recv");
}

void be_isend(const void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    must(rank_isend(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, req), "rank_isend");
}

void be_irecv(void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    must(rank_irecv(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, req), "rank_irecv");
}

void be_waitall(int n, be_request_t *reqs)
{
    must(rank_waitall(n, reqs, NULL), "rank_waitall");
}

struct be_window *be_window_create(size_t bytes, void **base)
{
    struct be_window *window = calloc(1, sizeof(*window));

    if (!window)
        be_abort(1, "rankbench: out of memory");
    if (rank_alloc(world, RANK_MEM_HOST, (int64_t)bytes, 0, base, &window->mem)) {
        free(window);
        return NULL;
    }
    return window;
}

void be_window_destroy(struct be_window *window)
{
    if (!window)
        return;
    must(rank_free(&window->mem), "rank_free");
    free(window);
}

void be_put(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset)
{
    must(rank_put(src, (int64_t)bytes, peer, window->mem, (int64_t)offset), "rank_put");
}

void be_get(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset)
{
    must(rank_get(dst, (int64_t)bytes, peer, window->mem, (int64_t)offset), "rank_get");
}

void be_add(struct be_window *window, int64_t value, int peer, size_t offset)
{
    must(rank_atomic(RANK_AMO_ADD, RANK_INT64, &value, peer, window->mem, (int64_t)offset, NULL),
         "rank_atomic");
}

void be_fetch_add(struct be_window *window, int64_t value, int peer, size_t offset, int64_t *before)
{
    must(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &value, peer, window->mem, (int64_t)offset,
                     before),
         "rank_atomic");
}

void be_swap(struct be_window *window, const int64_t *value, int peer, size_t offset, int64_t *before)
{
    must(rank_atomic(RANK_AMO_SWAP, RANK_INT64, value, peer, window->mem, (int64_t)offset, before), "rank_atomic");
}

void be_compare_swap(struct be_window *window, const int64_t *expected, const int64_t *value, int peer, size_t offset,
                     int64_t *before)
{
    must(rank_compare_swap(RANK_INT64, expected, value, peer, window->mem, (int64_t)offset, before),
         "rank_compare_swap");
}

void be_flush_puts(struct be_window *window, int peer)
{
    must(rank_flush(window->mem, peer), "rank_flush");
}

/* rank_get and rank_atomic return with the data. */
void be_flush_gets(struct be_window *window, int peer)
{
    (void)window;
    (void)peer;
}

void be_put_strided(struct be_window *window, const void *src, size_t block, size_t count, size_t stride, int peer,
                    size_t offset)
{
    must(rank_put_strided(src, (int64_t)block, (int64_t)block, (int64_t)count, peer, window->mem, (int64_t)offset,
                          (int64_t)stride),
         "rank_put_strided");
}

void be_get_strided(struct be_window *window, void *dst, size_t block, size_t count, size_t stride, int peer,
                    size_t offset)
{
    must(rank_get_strided(dst, (int64_t)block, (int64_t)block, (int64_t)count, peer, window->mem, (int64_t)offset,
                          (int64_t)stride),
         "rank_get_strided");
}

void be_put_signal(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, size_t signal,
                   uint64_t value)
{
    must(rank_put_signal(src, (int64_t)bytes, peer, window->mem, (int64_t)offset, window->mem, (int64_t)signal, value,
                         RANK_SIGNAL_SET),
         "rank_put_signal");
}

void be_signal_wait(struct be_window *window, size_t signal, uint64_t value, int peer)
{
    must(rank_signal_wait(window->mem, (int64_t)signal, RANK_CMP_GE, value, peer, NULL), "rank_signal_wait");
}

/* There is one copy. */
void be_window_sync(struct be_window *window)
{
    (void)window;
}

bool be_dtype_supported(rank_dtype_t dtype)
{
    return rank_dtype_size(dtype) > 0;
}

bool be_op_supported(rank_op_t op, rank_dtype_t dtype)
{
    return rank_op_defined(op, dtype);
}

void be_barrier(void)
{
    must(rank_barrier(world), "rank_barrier");
}

void be_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root)
{
    must(rank_bcast(buf, count, dtype, root, world), "rank_bcast");
}

void be_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
               int root)
{
    must(rank_reduce(sbuf, rbuf, count, dtype, op, root, world), "rank_reduce");
}

void be_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    must(rank_allreduce(sbuf, rbuf, count, dtype, op, world), "rank_allreduce");
}

void be_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    must(rank_gather(sbuf, rbuf, count, dtype, root, world), "rank_gather");
}

void be_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    must(rank_allgather(sbuf, rbuf, count, dtype, world), "rank_allgather");
}

void be_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    must(rank_scatter(sbuf, rbuf, count, dtype, root, world), "rank_scatter");
}

void be_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                       rank_op_t op)
{
    must(rank_reduce_scatter(sbuf, rbuf, count, dtype, op, world), "rank_reduce_scatter");
}

void be_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    must(rank_alltoall(sbuf, rbuf, count, dtype, world), "rank_alltoall");
}

struct be_blocks *be_blocks_create(const int64_t *counts, const int64_t *displs, int n)
{
    size_t bytes = (size_t)n * sizeof(*counts);
    struct be_blocks *blocks = calloc(1, sizeof(*blocks));

    if (!blocks || !(blocks->counts = malloc(bytes)) || !(blocks->displs = malloc(bytes)))
        be_abort(1, "rankbench: out of memory");
    memcpy(blocks->counts, counts, bytes);
    memcpy(blocks->displs, displs, bytes);
    return blocks;
}

void be_blocks_destroy(struct be_blocks *blocks)
{
    if (!blocks)
        return;
    free(blocks->counts);
    free(blocks->displs);
    free(blocks);
}

void be_allgatherv(const void *sbuf, void *rbuf, const struct be_blocks *blocks,
                   rank_dtype_t dtype)
{
    must(rank_allgatherv(sbuf, blocks->counts[me], rbuf, blocks->counts, blocks->displs, dtype,
                         world),
         "rank_allgatherv");
}
