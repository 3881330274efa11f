/* SPDX-License-Identifier: BSD-3-Clause */
/* backend_rank.c: run the benchmarks over librank. See backend.h. */
#include "bench/backend.h"
#include "bench/backend_cuda.h"

#include "lib/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char be_program[] = "rankbench";

static rank_team_t world;
static rank_ctx_t ctx; /* without a launcher; else RANK_CTX_NULL */
static int me, size;

/* Memory on each rank: of rank_alloc, or registered, and a key to each rank's. */
struct be_window {
    rank_mem_t mem;     /* my own */
    rank_mem_t *to;     /* [size] */
    enum be_sort sort;
    void *base;
    size_t bytes;
    int fd; /* of BE_SHARED */
};

struct be_memory {
    struct be_window *window; /* NULL: it is of the device's driver */
    void *of_driver;
};

struct be_blocks {
    int64_t *counts, *displs;
};

RK_COLD static void backend_rank_fail(rank_status_t st, const char *call)
{
    char text[256];

    snprintf(text, sizeof(text), "rankbench: %s: %s", call, rank_status_string(st));
    rank_abort(1, text);
}

RK_INLINE void backend_rank_must(rank_status_t st, const char *call)
{
    if (rk_unlikely(st))
        backend_rank_fail(st, call);
}

void be_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    backend_rank_must(rank_init(NULL), "rank_init");
    world = rank_world();
    me = rank_team_rank(world);
    size = rank_team_size(world);
}

/* Listen, and accept one. */
static void accept_one(const char *address, const rank_conn_opts_t *opts)
{
    rank_listener_t listener;
    char text[128];
    size_t len = sizeof(text);

    backend_rank_must(rank_listen(ctx, address, opts, &listener), "rank_listen");
    backend_rank_must(rank_listener_address(listener, text, &len), "rank_listener_address");
    fprintf(stderr, "rankbench: listening at %s\n", text);
    backend_rank_must(rank_accept(listener, -1, &world), "rank_accept");
    backend_rank_must(rank_listener_close(&listener), "rank_listener_close");
}

size_t be_connect(bool listens, const char *address, char *words, size_t len, size_t room)
{
    rank_ctx_opts_t ctx_opts = RANK_CTX_OPTS_INIT;
    rank_conn_opts_t opts = RANK_CONN_OPTS_INIT;
    rank_conn_info_t info = {.size = sizeof(info)};

    ctx_opts.thread_level = RANK_THREAD_SERIALIZED;
    ctx_opts.name = be_program;
    backend_rank_must(rank_ctx_open(&ctx_opts, &ctx), "rank_ctx_open");
    if (listens) {
        opts.flags = RANK_CONN_OPEN; /* a peer reaches the buffers of benchmarks only */
        accept_one(address, &opts);
    } else {
        opts.hello = words;
        opts.hello_bytes = len;
        backend_rank_must(rank_connect(ctx, address, &opts, &world), "rank_connect");
    }
    me = rank_team_rank(world);
    size = rank_team_size(world);
    if (!listens)
        return len;
    backend_rank_must(rank_conn_info(world, &info), "rank_conn_info");
    if (info.hello_bytes > room || (info.hello_bytes && info.hello[info.hello_bytes - 1]))
        be_abort(1, "rankbench: the other side is not rankbench");
    memcpy(words, info.hello, info.hello_bytes);
    return info.hello_bytes;
}

void be_finalize(void)
{
    if (ctx) {
        backend_rank_must(rank_disconnect(&world, 5000000000), "rank_disconnect");
        backend_rank_must(rank_ctx_close(&ctx, 0), "rank_ctx_close");
        backend_cuda_close();
        return;
    }
    backend_rank_must(rank_finalize(), "rank_finalize");
    backend_cuda_close();
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

struct be_memory *be_memory_create(size_t bytes, struct be_mem mem, void **base)
{
    struct be_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return NULL;
    if (be_needs_device(mem))
        *base = memory->of_driver = backend_cuda_alloc(bytes, mem);
    else
        memory->window = be_window_create(bytes, mem, base);
    if (!memory->of_driver && !memory->window) {
        free(memory);
        return NULL;
    }
    return memory;
}

void be_memory_destroy(struct be_memory *memory)
{
    if (!memory)
        return;
    be_window_destroy(memory->window);
    if (memory->of_driver)
        backend_cuda_free(memory->of_driver);
    free(memory);
}

void be_send(const void *buf, size_t bytes, int peer, int tag)
{
    backend_rank_must(rank_send(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world), "rank_send");
}

void be_recv(void *buf, size_t bytes, int peer, int tag)
{
    backend_rank_must(rank_recv(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, NULL), "rank_recv");
}

void be_isend(const void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    backend_rank_must(rank_isend(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, req), "rank_isend");
}

void be_irecv(void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    backend_rank_must(rank_irecv(buf, (int64_t)bytes, RANK_BYTE, peer, tag, world, req), "rank_irecv");
}

void be_waitall(int n, be_request_t *reqs)
{
    backend_rank_must(rank_waitall(n, reqs, NULL), "rank_waitall");
}

/* What a program has of its own: private memory, or a file's that others could map. */
static void *backend_rank_make_memory(size_t bytes, bool shared, int *fd)
{
    void *p;

    if (!shared)
        return posix_memalign(&p, 4096, bytes) ? NULL : memset(p, 0, bytes);
    *fd = memfd_create("rankbench", MFD_CLOEXEC);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0)
        return NULL;
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, *fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Register, or allocate for a connection, and open the keys of all ranks. */
static void give_keys(struct be_window *window)
{
    enum { ACCESS = RANK_ACCESS_READ | RANK_ACCESS_WRITE };
    char key[RANK_RKEY_MAX] = {0}, *keys = malloc((size_t)size * sizeof(key));
    int64_t *lens = malloc((size_t)size * sizeof(*lens)), mine;
    size_t len = sizeof(key);

    if (!keys || !lens)
        be_abort(1, "rankbench: out of memory");
    if (window->sort == BE_ALLOC)
        backend_rank_must(rank_ctx_alloc(ctx, (int64_t)window->bytes, ACCESS, &window->base, &window->mem), "rank_ctx_alloc");
    else
        backend_rank_must(rank_ctx_reg(ctx, window->base, (int64_t)window->bytes, ACCESS, &window->mem), "rank_reg");
    backend_rank_must(rank_rkey_pack(window->mem, key, &len), "rank_rkey_pack");
    mine = (int64_t)len;
    backend_rank_must(rank_allgather(&mine, lens, 1, RANK_INT64, world), "rank_allgather");
    backend_rank_must(rank_allgather(key, keys, sizeof(key), RANK_BYTE, world), "rank_allgather");
    for (int r = 0; r < size; r++)
        backend_rank_must(rank_rkey_open(world, r, keys + (size_t)r * sizeof(key), (size_t)lens[r], &window->to[r]), "rank_rkey_open");
    backend_rank_must(rank_barrier(world), "rank_barrier");
    free(keys);
    free(lens);
}

/* Memory of rank_alloc. Returns false if there is none. */
static bool backend_rank_alloc(struct be_window *window, struct be_mem mem)
{
    bool device = mem.sort == BE_CUDA;
    rank_status_t st;

    if (device)
        backend_cuda_enter(mem.device);
    st = rank_alloc(world, device ? RANK_MEM_CUDA : RANK_MEM_HOST, (int64_t)window->bytes, &window->base, &window->mem);
    if (device)
        backend_cuda_leave();
    for (int r = 0; !st && r < size; r++)
        window->to[r] = window->mem;
    return !st;
}

struct be_window *be_window_create(size_t bytes, struct be_mem mem, void **base)
{
    struct be_window *window = calloc(1, sizeof(*window));

    if (!window || !(window->to = calloc((size_t)size, sizeof(*window->to))))
        be_abort(1, "rankbench: out of memory");
    window->sort = mem.sort;
    window->bytes = bytes;
    if (mem.sort == BE_PRIVATE || mem.sort == BE_SHARED) {
        window->base = backend_rank_make_memory(bytes, mem.sort == BE_SHARED, &window->fd);
        if (!window->base)
            be_abort(1, "rankbench: out of memory");
        give_keys(window);
    } else if (mem.sort == BE_ALLOC && ctx) {
        give_keys(window);
    } else if (!backend_rank_alloc(window, mem)) {
        free(window->to);
        free(window);
        return NULL;
    }
    *base = window->base;
    return window;
}

void be_window_destroy(struct be_window *window)
{
    if (!window)
        return;
    if ((window->sort == BE_ALLOC && !ctx) || window->sort == BE_CUDA) {
        backend_rank_must(rank_free(&window->mem), "rank_free");
    } else {
        for (int r = 0; r < size; r++)
            backend_rank_must(rank_rkey_close(&window->to[r]), "rank_rkey_close");
        backend_rank_must(rank_barrier(world), "rank_barrier");
        backend_rank_must(rank_dereg(&window->mem), "rank_dereg");
        if (window->sort == BE_SHARED) {
            munmap(window->base, window->bytes);
            close(window->fd);
        } else if (window->sort == BE_PRIVATE) {
            free(window->base);
        }
    }
    free(window->to);
    free(window);
}

void be_put(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset)
{
    backend_rank_must(rank_put(src, (int64_t)bytes, peer, window->to[peer], (int64_t)offset), "rank_put");
}

void be_get(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset)
{
    backend_rank_must(rank_get(dst, (int64_t)bytes, peer, window->to[peer], (int64_t)offset), "rank_get");
}

void be_iput(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, be_request_t *req)
{
    backend_rank_must(rank_iput(src, (int64_t)bytes, peer, window->to[peer], (int64_t)offset, req), "rank_iput");
}

void be_iget(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset, be_request_t *req)
{
    backend_rank_must(rank_iget(dst, (int64_t)bytes, peer, window->to[peer], (int64_t)offset, req), "rank_iget");
}

void be_add(struct be_window *window, int64_t value, int peer, size_t offset)
{
    backend_rank_must(rank_atomic(RANK_AMO_ADD, RANK_INT64, &value, peer, window->to[peer], (int64_t)offset, NULL),
         "rank_atomic");
}

void be_fetch_add(struct be_window *window, int64_t value, int peer, size_t offset, int64_t *before)
{
    backend_rank_must(rank_atomic(RANK_AMO_FETCH_ADD, RANK_INT64, &value, peer, window->to[peer], (int64_t)offset,
                     before),
         "rank_atomic");
}

void be_swap(struct be_window *window, const int64_t *value, int peer, size_t offset, int64_t *before)
{
    backend_rank_must(rank_atomic(RANK_AMO_SWAP, RANK_INT64, value, peer, window->to[peer], (int64_t)offset, before), "rank_atomic");
}

void be_compare_swap(struct be_window *window, const int64_t *expected, const int64_t *value, int peer, size_t offset,
                     int64_t *before)
{
    backend_rank_must(rank_atomic_cas(RANK_INT64, expected, value, peer, window->to[peer], (int64_t)offset, before),
                      "rank_atomic_cas");
}

void be_flush_puts(struct be_window *window, int peer)
{
    backend_rank_must(rank_flush(window->to[peer], peer), "rank_flush");
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
    backend_rank_must(rank_put_strided(src, (int64_t)block, (int64_t)block, (int64_t)count, peer, window->to[peer], (int64_t)offset,
                          (int64_t)stride),
         "rank_put_strided");
}

void be_get_strided(struct be_window *window, void *dst, size_t block, size_t count, size_t stride, int peer,
                    size_t offset)
{
    backend_rank_must(rank_get_strided(dst, (int64_t)block, (int64_t)block, (int64_t)count, peer, window->to[peer], (int64_t)offset,
                          (int64_t)stride),
         "rank_get_strided");
}

struct be_list {
    rank_block_t *blocks;
    int64_t n;
    int peer;
    rank_xfer_op_t op;
};

struct be_list *be_list_create(struct be_window *window, bool reads, const struct be_block *blocks, size_t n, int peer)
{
    struct be_list *list = malloc(sizeof(*list));

    if (!list || !(list->blocks = malloc(n * sizeof(*list->blocks))))
        be_abort(1, "rankbench: out of memory");
    for (size_t i = 0; i < n; i++)
        list->blocks[i] = (rank_block_t){blocks[i].local, (int64_t)blocks[i].bytes, window->to[peer], (int64_t)blocks[i].offset};
    list->n = (int64_t)n;
    list->peer = peer;
    list->op = reads ? RANK_XFER_READ : RANK_XFER_WRITE;
    return list;
}

void be_list_destroy(struct be_list *list)
{
    free(list->blocks);
    free(list);
}

void be_list_start(struct be_list *list, be_request_t *req)
{
    backend_rank_must(rank_xfer(list->op, list->blocks, list->n, list->peer, world, NULL, req), "rank_xfer");
}

void be_lists_wait(struct be_window *window, int n, be_request_t *reqs, int peer)
{
    (void)window;
    (void)peer;
    be_waitall(n, reqs);
}

void be_put_signal(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, size_t signal,
                   uint64_t value)
{
    backend_rank_must(rank_put_signal(src, (int64_t)bytes, peer, window->to[peer], (int64_t)offset, window->to[peer], (int64_t)signal, value,
                         RANK_SIGNAL_SET),
         "rank_put_signal");
}

void be_signal_wait(struct be_window *window, size_t signal, uint64_t value, int peer)
{
    int source = ctx ? RANK_ANY_SOURCE : peer; /* memory of a context has no other */

    backend_rank_must(rank_signal_wait(window->mem, (int64_t)signal, RANK_CMP_GE, value, source, NULL), "rank_signal_wait");
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
    backend_rank_must(rank_barrier(world), "rank_barrier");
}

void be_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root)
{
    backend_rank_must(rank_bcast(buf, count, dtype, root, world), "rank_bcast");
}

void be_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
               int root)
{
    backend_rank_must(rank_reduce(sbuf, rbuf, count, dtype, op, root, world), "rank_reduce");
}

void be_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    backend_rank_must(rank_allreduce(sbuf, rbuf, count, dtype, op, world), "rank_allreduce");
}

void be_iallreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req)
{
    backend_rank_must(rank_iallreduce(sbuf, rbuf, count, dtype, op, world, req), "rank_iallreduce");
}

bool be_allreduce_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req)
{
    backend_rank_must(rank_allreduce_init(sbuf, rbuf, count, dtype, op, world, req), "rank_allreduce_init");
    return true;
}

void be_start(be_request_t *req)
{
    backend_rank_must(rank_start(req), "rank_start");
}

void be_request_free(be_request_t *req)
{
    backend_rank_must(rank_request_free(req), "rank_request_free");
}

void be_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    backend_rank_must(rank_gather(sbuf, rbuf, count, dtype, root, world), "rank_gather");
}

void be_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    backend_rank_must(rank_allgather(sbuf, rbuf, count, dtype, world), "rank_allgather");
}

void be_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    backend_rank_must(rank_scatter(sbuf, rbuf, count, dtype, root, world), "rank_scatter");
}

void be_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                       rank_op_t op)
{
    backend_rank_must(rank_reduce_scatter(sbuf, rbuf, count, dtype, op, world), "rank_reduce_scatter");
}

void be_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    backend_rank_must(rank_alltoall(sbuf, rbuf, count, dtype, world), "rank_alltoall");
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
    backend_rank_must(rank_allgatherv(sbuf, blocks->counts[me], rbuf, blocks->counts, blocks->displs, dtype,
                         world),
         "rank_allgatherv");
}

void be_gatherv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root)
{
    backend_rank_must(rank_gatherv(sbuf, blocks->counts[me], rbuf, blocks->counts, blocks->displs, dtype, root, world),
                      "rank_gatherv");
}

void be_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root)
{
    backend_rank_must(rank_scatterv(sbuf, blocks->counts, blocks->displs, rbuf, blocks->counts[me], dtype, root, world),
                      "rank_scatterv");
}

void be_alltoallv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype)
{
    backend_rank_must(rank_alltoallv(sbuf, blocks->counts, blocks->displs, rbuf, blocks->counts, blocks->displs, dtype, world),
                      "rank_alltoallv");
}

void be_reduce_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, rank_op_t op)
{
    backend_rank_must(rank_reduce_scatterv(sbuf, rbuf, blocks->counts, dtype, op, world), "rank_reduce_scatterv");
}

void be_scan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    backend_rank_must(rank_scan(sbuf, rbuf, count, dtype, op, world), "rank_scan");
}

void be_exscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    backend_rank_must(rank_exscan(sbuf, rbuf, count, dtype, op, world), "rank_exscan");
}
