/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend_mpi.c: run the benchmarks over MPI-3, as backend_rank.c does.
 *
 * MPI's default error handler ends the job, so return codes are not checked.
 */
#include "bench/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* librank is not linked. Of a predefined datatype, as rank/types.h lays it out. */
int64_t rank_dtype_size(rank_dtype_t dtype)
{
    return dtype >> 24 == RANK_BYTE >> 24 ? (int64_t)(dtype & 0xff) : RANK_ERR_DTYPE;
}

const char be_program[] = "mpibench";

static int me, size;

struct be_memory {
    void *base;
};

struct be_window {
    char *base;
    MPI_Datatype blocks; /* of the last shape; MPI_DATATYPE_NULL: none yet */
    size_t shape[3];
    MPI_Win win;
    int64_t value; /* of an addition, until the flush */
};

struct be_blocks {
    int *counts, *displs;
};

/*
 * By rank.h's numbers, filled at init: a look-up must cost nothing. MPI has no
 * half precision, no average, and pairs of its own layout only.
 */
static MPI_Datatype dtypes[BENCH_DTYPES];
static MPI_Op ops[BENCH_OPS];

static void fill_tables(void)
{
    for (int i = 0; i < BENCH_DTYPES; i++)
        dtypes[i] = MPI_DATATYPE_NULL;
    for (int i = 0; i < BENCH_OPS; i++)
        ops[i] = MPI_OP_NULL;
    dtypes[BENCH_INDEX(RANK_BYTE)] = MPI_BYTE;
    dtypes[BENCH_INDEX(RANK_INT8)] = MPI_INT8_T;
    dtypes[BENCH_INDEX(RANK_INT16)] = MPI_INT16_T;
    dtypes[BENCH_INDEX(RANK_INT32)] = MPI_INT32_T;
    dtypes[BENCH_INDEX(RANK_INT64)] = MPI_INT64_T;
    dtypes[BENCH_INDEX(RANK_UINT8)] = MPI_UINT8_T;
    dtypes[BENCH_INDEX(RANK_UINT16)] = MPI_UINT16_T;
    dtypes[BENCH_INDEX(RANK_UINT32)] = MPI_UINT32_T;
    dtypes[BENCH_INDEX(RANK_UINT64)] = MPI_UINT64_T;
    dtypes[BENCH_INDEX(RANK_F32)] = MPI_FLOAT;
    dtypes[BENCH_INDEX(RANK_F64)] = MPI_DOUBLE;
    dtypes[BENCH_INDEX(RANK_F32_COMPLEX)] = MPI_C_FLOAT_COMPLEX;
    dtypes[BENCH_INDEX(RANK_F64_COMPLEX)] = MPI_C_DOUBLE_COMPLEX;
    dtypes[BENCH_INDEX(RANK_PAIR_INT32)] = MPI_2INT;
    dtypes[BENCH_INDEX(RANK_PAIR_F32)] = MPI_FLOAT_INT;
    ops[BENCH_INDEX(RANK_SUM)] = MPI_SUM;
    ops[BENCH_INDEX(RANK_PROD)] = MPI_PROD;
    ops[BENCH_INDEX(RANK_MIN)] = MPI_MIN;
    ops[BENCH_INDEX(RANK_MAX)] = MPI_MAX;
    ops[BENCH_INDEX(RANK_LAND)] = MPI_LAND;
    ops[BENCH_INDEX(RANK_LOR)] = MPI_LOR;
    ops[BENCH_INDEX(RANK_LXOR)] = MPI_LXOR;
    ops[BENCH_INDEX(RANK_BAND)] = MPI_BAND;
    ops[BENCH_INDEX(RANK_BOR)] = MPI_BOR;
    ops[BENCH_INDEX(RANK_BXOR)] = MPI_BXOR;
    ops[BENCH_INDEX(RANK_MINLOC)] = MPI_MINLOC;
    ops[BENCH_INDEX(RANK_MAXLOC)] = MPI_MAXLOC;
}

void be_init(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    fill_tables();
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

size_t be_connect(bool listens, const char *address, char *words, size_t len, size_t room)
{
    (void)address;
    (void)words;
    (void)len;
    (void)room;
    fprintf(stderr, "mpibench: %s is an option of rankbench only\n", listens ? "--listen" : "--connect");
    exit(2);
}

void be_finalize(void)
{
    MPI_Finalize();
}

void be_abort(int code, const char *text)
{
    fprintf(stderr, "%s\n", text);
    MPI_Abort(MPI_COMM_WORLD, code);
    abort();
}

int be_rank(void)
{
    return me;
}

int be_size(void)
{
    return size;
}

/* "Open MPI v5.0.11" or "MPICH 4.0.2": the part that names a version. */
void be_library(char *out, size_t len)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING], *p;
    int n;

    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",\n")] = '\0';
    p = strstr(text, "Version:");
    if (p)
        snprintf(out, len, "%.*s %s", (int)strcspn(text, " "), text, p + 8 + strspn(p + 8, " \t"));
    else
        snprintf(out, len, "%s", text);
}

const char *be_channel(int peer)
{
    (void)peer;
    return "";
}

void be_device_prepare(void)
{
}

bool be_device_usable(struct be_mem mem, char *why, size_t room)
{
    (void)mem;
    snprintf(why, room, "mpibench measures host memory only");
    return false;
}

void be_nic_text(char *out, size_t room)
{
    (void)room;
    out[0] = '\0';
}

void be_device_text(char *out, size_t room)
{
    (void)room;
    out[0] = '\0';
}

void be_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

struct be_memory *be_memory_create(size_t bytes, struct be_mem mem, void **base)
{
    struct be_memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        be_abort(1, "mpibench: out of memory");
    (void)mem; /* there is but one */
    MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory->base);
    *base = memory->base;
    return memory;
}

void be_memory_destroy(struct be_memory *memory)
{
    if (!memory)
        return;
    MPI_Free_mem(memory->base);
    free(memory);
}

void be_send(const void *buf, size_t bytes, int peer, int tag)
{
    MPI_Send(buf, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
}

void be_recv(void *buf, size_t bytes, int peer, int tag)
{
    MPI_Recv(buf, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void be_isend(const void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    MPI_Isend(buf, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
}

void be_irecv(void *buf, size_t bytes, int peer, int tag, be_request_t *req)
{
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, req);
}

void be_waitall(int n, be_request_t *reqs)
{
    MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
}

struct be_window *be_window_create(size_t bytes, struct be_mem mem, void **base)
{
    struct be_window *window = calloc(1, sizeof(*window));

    if (!window)
        be_abort(1, "mpibench: out of memory");
    (void)mem;
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, base, &window->win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window->win);
    window->base = *(char **)base;
    window->blocks = MPI_DATATYPE_NULL;
    return window;
}

void be_window_destroy(struct be_window *window)
{
    if (!window)
        return;
    MPI_Win_unlock_all(window->win);
    if (window->blocks != MPI_DATATYPE_NULL)
        MPI_Type_free(&window->blocks);
    MPI_Win_free(&window->win);
    free(window);
}

void be_put(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset)
{
    MPI_Put(src, (int)bytes, MPI_BYTE, peer, (MPI_Aint)offset, (int)bytes, MPI_BYTE, window->win);
}

void be_get(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset)
{
    MPI_Get(dst, (int)bytes, MPI_BYTE, peer, (MPI_Aint)offset, (int)bytes, MPI_BYTE, window->win);
}

void be_iput(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, be_request_t *req)
{
    MPI_Rput(src, (int)bytes, MPI_BYTE, peer, (MPI_Aint)offset, (int)bytes, MPI_BYTE, window->win, req);
}

void be_iget(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset, be_request_t *req)
{
    MPI_Rget(dst, (int)bytes, MPI_BYTE, peer, (MPI_Aint)offset, (int)bytes, MPI_BYTE, window->win, req);
}

void be_add(struct be_window *window, int64_t value, int peer, size_t offset)
{
    window->value = value;
    MPI_Accumulate(&window->value, 1, MPI_INT64_T, peer, (MPI_Aint)offset, 1, MPI_INT64_T, MPI_SUM,
                   window->win);
}

void be_fetch_add(struct be_window *window, int64_t value, int peer, size_t offset, int64_t *before)
{
    window->value = value;
    MPI_Fetch_and_op(&window->value, before, MPI_INT64_T, peer, (MPI_Aint)offset, MPI_SUM,
                     window->win);
}

void be_swap(struct be_window *window, const int64_t *value, int peer, size_t offset, int64_t *before)
{
    MPI_Fetch_and_op(value, before, MPI_INT64_T, peer, (MPI_Aint)offset, MPI_REPLACE, window->win);
}

void be_compare_swap(struct be_window *window, const int64_t *expected, const int64_t *value, int peer, size_t offset,
                     int64_t *before)
{
    MPI_Compare_and_swap(value, expected, before, MPI_INT64_T, peer, (MPI_Aint)offset, window->win);
}

void be_flush_puts(struct be_window *window, int peer)
{
    MPI_Win_flush(peer, window->win);
}

void be_flush_gets(struct be_window *window, int peer)
{
    MPI_Win_flush(peer, window->win);
}

static MPI_Datatype blocks_of(struct be_window *window, size_t block, size_t count, size_t stride)
{
    size_t *shape = window->shape;

    if (window->blocks != MPI_DATATYPE_NULL && shape[0] == block && shape[1] == count && shape[2] == stride)
        return window->blocks;
    if (window->blocks != MPI_DATATYPE_NULL)
        MPI_Type_free(&window->blocks);
    MPI_Type_vector((int)count, (int)block, (int)stride, MPI_BYTE, &window->blocks);
    MPI_Type_commit(&window->blocks);
    shape[0] = block;
    shape[1] = count;
    shape[2] = stride;
    return window->blocks;
}

void be_put_strided(struct be_window *window, const void *src, size_t block, size_t count, size_t stride, int peer,
                    size_t offset)
{
    MPI_Put(src, (int)(block * count), MPI_BYTE, peer, (MPI_Aint)offset, 1, blocks_of(window, block, count, stride),
            window->win);
}

void be_get_strided(struct be_window *window, void *dst, size_t block, size_t count, size_t stride, int peer,
                    size_t offset)
{
    MPI_Get(dst, (int)(block * count), MPI_BYTE, peer, (MPI_Aint)offset, 1, blocks_of(window, block, count, stride),
            window->win);
}

struct be_list {
    struct be_window *window;
    struct be_block *blocks;
    size_t n;
    int peer;
    bool reads;
};

struct be_list *be_list_create(struct be_window *window, bool reads, const struct be_block *blocks, size_t n, int peer)
{
    struct be_list *list = malloc(sizeof(*list));

    if (!list || !(list->blocks = malloc(n * sizeof(*blocks))))
        be_abort(1, "mpibench: out of memory");
    memcpy(list->blocks, blocks, n * sizeof(*blocks));
    list->window = window;
    list->n = n;
    list->peer = peer;
    list->reads = reads;
    return list;
}

void be_list_destroy(struct be_list *list)
{
    free(list->blocks);
    free(list);
}

/* MPI has no such call: a loop, which the flush completes. */
void be_list_start(struct be_list *list, be_request_t *req)
{
    *req = MPI_REQUEST_NULL;
    for (const struct be_block *b = list->blocks; b < list->blocks + list->n; b++) {
        if (list->reads)
            be_get(list->window, b->local, b->bytes, list->peer, b->offset);
        else
            be_put(list->window, b->local, b->bytes, list->peer, b->offset);
    }
}

void be_lists_wait(struct be_window *window, int n, be_request_t *reqs, int peer)
{
    (void)n;
    (void)reqs;
    MPI_Win_flush(peer, window->win);
}

void be_put_signal(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, size_t signal,
                   uint64_t value)
{
    window->value = (int64_t)value;
    be_put(window, src, bytes, peer, offset);
    MPI_Win_flush(peer, window->win);
    MPI_Accumulate(&window->value, 1, MPI_INT64_T, peer, (MPI_Aint)signal, 1, MPI_INT64_T, MPI_REPLACE, window->win);
    MPI_Win_flush(peer, window->win);
}

/* The word is read in memory; now and then the library has its turn, where the writer needs that. */
void be_signal_wait(struct be_window *window, size_t signal, uint64_t value, int peer)
{
    volatile uint64_t *word = (volatile uint64_t *)(void *)(window->base + signal);

    for (int i = 1;; i++) {
        int flag;
        MPI_Win_sync(window->win);
        if (*word >= value)
            break;
        if (i % 16 == 0)
            MPI_Iprobe(peer, BE_TAG_CTL, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Win_sync(window->win);
}

void be_window_sync(struct be_window *window)
{
    MPI_Win_sync(window->win);
}

bool be_dtype_supported(rank_dtype_t dtype)
{
    return dtypes[BENCH_INDEX(dtype)] != MPI_DATATYPE_NULL;
}

bool be_op_supported(rank_op_t op, rank_dtype_t dtype)
{
    if (ops[BENCH_INDEX(op)] == MPI_OP_NULL || dtypes[BENCH_INDEX(dtype)] == MPI_DATATYPE_NULL)
        return false;
    switch (op) {
    case RANK_SUM:
    case RANK_PROD:
        return dtype >= RANK_INT8 && dtype <= RANK_F64_COMPLEX;
    case RANK_MIN:
    case RANK_MAX:
        return dtype >= RANK_INT8 && dtype <= RANK_F64;
    case RANK_LAND:
    case RANK_LOR:
    case RANK_LXOR:
        return dtype >= RANK_INT8 && dtype <= RANK_UINT64;
    case RANK_BAND:
    case RANK_BOR:
    case RANK_BXOR:
        return dtype >= RANK_BYTE && dtype <= RANK_UINT64;
    default: /* minloc, maxloc */
        return dtype >= RANK_PAIR_INT32;
    }
}

void be_barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

void be_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root)
{
    MPI_Bcast(buf, (int)count, dtypes[BENCH_INDEX(dtype)], root, MPI_COMM_WORLD);
}

void be_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
               int root)
{
    MPI_Reduce(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], root, MPI_COMM_WORLD);
}

void be_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    MPI_Allreduce(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD);
}

void be_iallreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req)
{
    MPI_Iallreduce(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD, req);
}

bool be_allreduce_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req)
{
#if MPI_VERSION >= 4
    MPI_Allreduce_init(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD, MPI_INFO_NULL, req);
    return true;
#else
    (void)sbuf, (void)rbuf, (void)count, (void)dtype, (void)op, (void)req;
    return false;
#endif
}

void be_start(be_request_t *req)
{
    MPI_Start(req);
}

void be_request_free(be_request_t *req)
{
    MPI_Request_free(req);
}

void be_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Gather(sbuf, (int)count, t, rbuf, (int)count, t, root, MPI_COMM_WORLD);
}

void be_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Allgather(sbuf, (int)count, t, rbuf, (int)count, t, MPI_COMM_WORLD);
}

void be_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Scatter(sbuf, (int)count, t, rbuf, (int)count, t, root, MPI_COMM_WORLD);
}

void be_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                       rank_op_t op)
{
    MPI_Reduce_scatter_block(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD);
}

void be_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Alltoall(sbuf, (int)count, t, rbuf, (int)count, t, MPI_COMM_WORLD);
}

struct be_blocks *be_blocks_create(const int64_t *counts, const int64_t *displs, int n)
{
    size_t bytes = (size_t)n * sizeof(int);
    struct be_blocks *blocks = calloc(1, sizeof(*blocks));

    if (!blocks || !(blocks->counts = malloc(bytes)) || !(blocks->displs = malloc(bytes)))
        be_abort(1, "mpibench: out of memory");
    for (int i = 0; i < n; i++) {
        blocks->counts[i] = (int)counts[i];
        blocks->displs[i] = (int)displs[i];
    }
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
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Allgatherv(sbuf, blocks->counts[me], t, rbuf, blocks->counts, blocks->displs, t,
                   MPI_COMM_WORLD);
}

void be_gatherv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Gatherv(sbuf, blocks->counts[me], t, rbuf, blocks->counts, blocks->displs, t, root, MPI_COMM_WORLD);
}

void be_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Scatterv(sbuf, blocks->counts, blocks->displs, t, rbuf, blocks->counts[me], t, root, MPI_COMM_WORLD);
}

void be_alltoallv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype)
{
    MPI_Datatype t = dtypes[BENCH_INDEX(dtype)];

    MPI_Alltoallv(sbuf, blocks->counts, blocks->displs, t, rbuf, blocks->counts, blocks->displs, t, MPI_COMM_WORLD);
}

void be_reduce_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, rank_op_t op)
{
    MPI_Reduce_scatter(sbuf, rbuf, blocks->counts, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD);
}

void be_scan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    MPI_Scan(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD);
}

void be_exscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op)
{
    MPI_Exscan(sbuf, rbuf, (int)count, dtypes[BENCH_INDEX(dtype)], ops[BENCH_INDEX(op)], MPI_COMM_WORLD);
}
