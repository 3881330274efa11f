/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h: call a communication library for the benchmarks.
 *
 * There are two: backend_rank.c (librank, program rankbench) and backend_mpi.c
 * (any MPI-3, program mpibench). All else of the frame is the same source for
 * both, so that what is compared is the libraries. Each function is one call
 * of the library, bound when the program is linked; a failure of the library
 * ends the job with a line that names the call, so nothing here returns one.
 *
 * Ranks are those of the world. Byte counts up to 2^31 - 1 are good for both.
 */
#ifndef BENCH_BACKEND_H
#define BENCH_BACKEND_H

#include "lib/rank.h" /* the names of datatypes and operations, for MPI too */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef BENCH_MPI
#include <mpi.h>
typedef MPI_Request be_request_t;
enum { BE_ANY = MPI_ANY_SOURCE }; /* of a receive: any source */
#else
typedef rank_request_t be_request_t;
enum { BE_ANY = RANK_ANY_SOURCE };
#endif

/* Datatypes and operations by their index, in the order of rank.h: what the options and tables count. */
#define BENCH_INDEX(handle) ((unsigned)((handle) >> 8) & 0xffff)
enum { BENCH_DTYPES = BENCH_INDEX(RANK_PAIR_F64) + 1, BENCH_OPS = BENCH_INDEX(RANK_MAXLOC) + 1 };

enum {
    BE_TAG_DATA, /* what is measured */
    BE_TAG_CTL,  /* the frame's own messages */
    BE_TAG_QUEUE /* and those behind it: of messages that are in the way */
};

/* --------------------------------------------------------------------- life */

void be_init(int *argc, char ***argv);
/*
 * In place of be_init: without a launcher, with one other process, which connects to the one that listens and is rank 0.
 * words: len bytes from the one that connects to the other one, which has room for them. Returns their number.
 */
size_t be_connect(bool listens, const char *address, char *words, size_t len, size_t room);
void be_finalize(void);
void be_abort(int code, const char *text) __attribute__((noreturn));
int be_rank(void);
int be_size(void);

/* "rankbench" or "mpibench": for messages. */
extern const char be_program[];
/* Name and version of the library, one line. */
void be_library(char *out, size_t len);
/* The transport of messages to peer: a word, or "" if the library does not report it. */
const char *be_channel(int peer);

/* ------------------------------------------------------------------ memory */

/* Of the library's (rank_alloc, MPI_Alloc_mem); the program's own, registered: private, or shared, so that others could
 * map it; neither (BE_MALLOC). Of a CUDA device's; managed by its driver. MPI has the first alone. */
enum be_sort { BE_ALLOC, BE_PRIVATE, BE_SHARED, BE_MALLOC, BE_CUDA, BE_MANAGED };
/* Where a buffer lies. */
struct be_mem {
    enum be_sort sort;
    int device; /* of BE_CUDA: its ordinal, or -1 for the rank's own */
};
static inline bool be_needs_device(struct be_mem mem)
{
    return mem.sort == BE_CUDA || mem.sort == BE_MANAGED;
}
/* Memory for messages. Collective. NULL: none. */
struct be_memory;
struct be_memory *be_memory_create(size_t bytes, struct be_mem mem, void **base);
void be_memory_destroy(struct be_memory *memory);

/* Load the device's driver, and have the library use it. Call before be_init. */
void be_device_prepare(void);
/* Can this rank use it? If not, why gets one line with the reason. */
bool be_device_usable(struct be_mem mem, char *why, size_t room);
/* The devices that this rank uses: "" if there are none. */
void be_device_text(char *out, size_t room);
/* The NICs of this rank, with the path from its device if that is used: "" without a device in use, or without a NIC. */
void be_nic_text(char *out, size_t room);
/* Copy to or from device memory. Returns when the copy is complete. */
void be_copy(void *to, const void *from, size_t bytes);

/* ---------------------------------------------------------- point to point */

void be_send(const void *buf, size_t bytes, int peer, int tag);
void be_recv(void *buf, size_t bytes, int peer, int tag);
void be_isend(const void *buf, size_t bytes, int peer, int tag, be_request_t *req);
void be_irecv(void *buf, size_t bytes, int peer, int tag, be_request_t *req);
void be_waitall(int n, be_request_t *reqs);

/* --------------------------------------------------------------- one-sided */

/* bytes of memory on every rank that the others may put to and get from. Collective. NULL: none. */
struct be_window;
struct be_window *be_window_create(size_t bytes, struct be_mem mem, void **base);
void be_window_destroy(struct be_window *window);
void be_put(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset);
void be_get(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset);
/* Started alone; a request for be_waitall. It is complete when src may be reused, or dst holds the data. */
void be_iput(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, be_request_t *req);
void be_iget(struct be_window *window, void *dst, size_t bytes, int peer, size_t offset, be_request_t *req);
/* On an int64_t; both are complete, and *before is written, after the flush. */
void be_add(struct be_window *window, int64_t value, int peer, size_t offset);
void be_fetch_add(struct be_window *window, int64_t value, int peer, size_t offset, int64_t *before);
/* As be_fetch_add; what is pointed to stays as it is until the flush. */
void be_swap(struct be_window *window, const int64_t *value, int peer, size_t offset, int64_t *before);
void be_compare_swap(struct be_window *window, const int64_t *expected, const int64_t *value, int peer, size_t offset,
                     int64_t *before);
/* What was put or added is visible at peer; what was got or fetched is here. */
void be_flush_puts(struct be_window *window, int peer);
void be_flush_gets(struct be_window *window, int peer);
/* count blocks, together here and stride apart at peer. */
void be_put_strided(struct be_window *window, const void *src, size_t block, size_t count, size_t stride, int peer,
                    size_t offset);
void be_get_strided(struct be_window *window, void *dst, size_t block, size_t count, size_t stride, int peer,
                    size_t offset);
/* Blocks of a transfer: local memory, and its place in the window at peer. */
struct be_block {
    void *local;
    size_t bytes, offset;
};
/* A transfer of blocks to peer, or from it, prepared once and started any number of times. */
struct be_list;
struct be_list *be_list_create(struct be_window *window, bool reads, const struct be_block *blocks, size_t n, int peer);
void be_list_destroy(struct be_list *list);
void be_list_start(struct be_list *list, be_request_t *req);
/* n transfers are complete: what was written is visible at peer. */
void be_lists_wait(struct be_window *window, int n, be_request_t *reqs, int peer);
/* A put; then peer's word at signal (a multiple of 8), which only grows, becomes value. A wait for that ends with the data. */
void be_put_signal(struct be_window *window, const void *src, size_t bytes, int peer, size_t offset, size_t signal,
                   uint64_t value);
void be_signal_wait(struct be_window *window, size_t signal, uint64_t value, int peer);
/* Before the owner of a part reads or writes what others put there or get: makes both copies one. */
void be_window_sync(struct be_window *window);

/* -------------------------------------------------------------- collectives */

/* Counts as in rank.h: elements that each rank contributes or gets, or a whole vector. */
bool be_dtype_supported(rank_dtype_t dtype);
bool be_op_supported(rank_op_t op, rank_dtype_t dtype);
void be_barrier(void);
void be_bcast(void *buf, int64_t count, rank_dtype_t dtype, int root);
void be_reduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op,
               int root);
void be_allreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op);
void be_gather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root);
void be_allgather(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype);
void be_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, int root);
void be_reduce_scatter(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype,
                       rank_op_t op);
void be_alltoall(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype);

void be_scan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op);
void be_exscan(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op);

/* Forms of a request, to be waited for by be_waitall; a persistent one is started again then. False: the library has none. */
void be_iallreduce(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req);
bool be_allreduce_init(const void *sbuf, void *rbuf, int64_t count, rank_dtype_t dtype, rank_op_t op, be_request_t *req);
void be_start(be_request_t *req);
void be_request_free(be_request_t *req);

/* Uneven blocks: the library's own arrays are made once, outside the timed part. */
struct be_blocks;
struct be_blocks *be_blocks_create(const int64_t *counts, const int64_t *displs, int n);
void be_blocks_destroy(struct be_blocks *blocks);
void be_allgatherv(const void *sbuf, void *rbuf, const struct be_blocks *blocks,
                   rank_dtype_t dtype);
void be_gatherv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root);
void be_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, int root);
void be_alltoallv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype);
void be_reduce_scatterv(const void *sbuf, void *rbuf, const struct be_blocks *blocks, rank_dtype_t dtype, rank_op_t op);

#endif
