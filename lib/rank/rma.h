/* SPDX-License-Identifier: BSD-3-Clause */
/* rma.h: declare memory of peers, one-sided calls, signals. Part of rank.h. */
#ifndef RANK_RMA_H
#define RANK_RMA_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------- rank_mem: memory that peers can access */

typedef enum rank_mem_kind {
    RANK_MEM_HOST = 0,
    RANK_MEM_CUDA /* memory of a CUDA device */
} rank_mem_kind_t;

/*
 * Find the kind of the memory that holds ptr. *device is the ordinal of its device in this process, or -1 for host memory;
 * device may be NULL. Managed and pinned memory are host memory. RANK_ERR_STATE: the process has called neither
 * rank_init nor rank_ctx_open. RANK_ERR_DEVICE: the driver cannot tell.
 */
RANK_API rank_status_t rank_mem_kind(const void *ptr, rank_mem_kind_t *kind, int *device);

/*
 * Allocate bytes on every rank of team, zeroed. Collective. Every rank gives the same bytes. *ptr is the
 * part of this rank. *mem is the handle of all parts. Each part is aligned for every datatype. Fails on every rank
 * or on none.
 * RANK_MEM_CUDA: each part lies on the device of the calling thread's current context, or on device 0. Puts and gets
 * access it. Atomics and signals in it are RANK_ERR_NOT_SUPPORTED; keep signals in host memory.
 * RANK_ERR_ARG: the ranks give different sizes or kinds.
 * RANK_ERR_NO_MEMORY: a rank is out of memory, also of device memory.
 * RANK_ERR_NOT_SUPPORTED: kind is RANK_MEM_CUDA, and a rank has no such memory (RANK_CUDA).
 */
RANK_API rank_status_t rank_alloc(rank_team_t team, rank_mem_kind_t kind, int64_t bytes, void **ptr, rank_mem_t *mem);

/* Free the memory and set *mem to RANK_MEM_NULL. Collective. Waits for all ranks. */
RANK_API rank_status_t rank_free(rank_mem_t *mem);

/* Get the address of a peer's part in this process: a device pointer for RANK_MEM_CUDA. *ptr is NULL if it cannot be mapped. */
RANK_API rank_status_t rank_ptr(rank_mem_t mem, int peer, void **ptr);

/*
 * Register memory of this rank, so that peers can open a key to it. Not collective. The only peer of the handle is
 * the caller's rank in the world. The memory stays until rank_dereg, which comes after the last rank_flush of the
 * peers and sets *mem to RANK_MEM_NULL. Peers of the node map memory that is shared (memfd_create, shm_open,
 * MAP_SHARED). It then behaves like rank_alloc memory.
 * RANK_ERR_NOT_SUPPORTED: ptr is not host memory.
 */
RANK_API rank_status_t rank_reg(void *ptr, int64_t bytes, rank_mem_t *mem);
RANK_API rank_status_t rank_dereg(rank_mem_t *mem);

/* Rights of peers to registered memory (rank_ctx_reg). */
enum { RANK_ACCESS_READ = 1, RANK_ACCESS_WRITE = 2 };

/*
 * As rank_dereg, and wait until the peers touch the memory no more. *mem becomes RANK_MEM_NULL in any case. No
 * message from or to the memory may be pending. Later calls of peers on opened keys are RANK_ERR_HANDLE; puts report
 * it at the next flush. Waits for timeout_ns at most.
 * RANK_OK: all peers of this host have confirmed, or are gone.
 * RANK_ERR_TIMED_OUT: one has not, and may still touch the memory: do not use it for other data.
 */
RANK_API rank_status_t rank_dereg_timed(rank_mem_t *mem, int64_t timeout_ns);

enum { RANK_RKEY_MAX = 1024 }; /* bytes of the longest key */

/* Write the key of registered memory. *len is the size of key in bytes before the call, and the length of the key
 * after it.
 * RANK_ERR_TRUNCATED: key is too small. */
RANK_API rank_status_t rank_rkey_pack(rank_mem_t mem, void *key, size_t *len);

/*
 * Open a key that peer, a rank of team, has packed. *mem serves one-sided calls to that peer. Offsets count from the
 * start of the registered memory. The call may wait until the peer makes progress.
 * RANK_ERR_HANDLE: the key is damaged, of another peer, or of memory that is no longer registered.
 */
RANK_API rank_status_t rank_rkey_open(rank_team_t team, int peer, const void *key, size_t len,
                                      rank_mem_t *mem);

/*
 * Write the keys of n registered memories of one context as one list of bytes. keys NULL: *len becomes what is needed.
 * Otherwise *len is the size of keys before the call, and the length of the list after it.
 * RANK_ERR_TRUNCATED: keys is too small; *len is what is needed.
 * RANK_ERR_HANDLE: one is not registered memory. RANK_ERR_ARG: one is of another context.
 */
RANK_API rank_status_t rank_rkeys_pack(int64_t n, const rank_mem_t *mems, void *keys, size_t *len);

/*
 * Open a list of keys as rank_rkey_open opens each, in few messages: all of them or none. *n is the room of mems before the call,
 * and the number of keys after it. Close each with rank_rkey_close.
 * RANK_ERR_TRUNCATED: there are more; *n is their number.
 * RANK_ERR_HANDLE: the list is damaged, of another version or peer, or a memory is no longer registered. Nothing is open.
 */
RANK_API rank_status_t rank_rkeys_open(rank_team_t team, int peer, const void *keys, size_t len, int64_t *n, rank_mem_t *mems);

/* Flush as rank_flush does, close the key and set *mem to RANK_MEM_NULL. */
RANK_API rank_status_t rank_rkey_close(rank_mem_t *mem);

/* -------------------------------------------------------------------------- rank_put: access the memory of a peer */

/* peer is a rank of the team of mem. offset and bytes are in bytes, in the part of peer. doc/rma.md defines when data is
 * visible, and what a failure leaves. */

/* Copy bytes from src to the memory of peer. On return src may be reused. The data is visible at the peer after
 * rank_flush. Puts to one peer have no order, unless rank_fence separates them. */
RANK_API rank_status_t rank_put(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Copy bytes from the memory of peer. On return dst holds the data. */
RANK_API rank_status_t rank_get(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                int64_t offset);

/* Start a put or a get. When the request is complete, src may be reused, or dst holds the data. rank_flush completes
 * it, but does not free it. */
RANK_API rank_status_t rank_iput(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);
RANK_API rank_status_t rank_iget(void *dst, int64_t bytes, int peer, rank_mem_t mem,
                                 int64_t offset, rank_request_t *req);

/* A piece of a vector. A put reads local, a get writes it. Unlike a rank_iov_t it has a place at the peer. */
typedef struct rank_piece {
    void *local;
    int64_t bytes;
    int64_t offset; /* in the part of peer */
} rank_piece_t;

/* Do n puts or gets. pieces is read during the call only. If one piece is invalid, none moves. Pieces that a get
 * writes must not overlap. */
RANK_API rank_status_t rank_putv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);
RANK_API rank_status_t rank_getv(const rank_piece_t *pieces, int64_t n, int peer, rank_mem_t mem);

/*
 * Move count blocks of block bytes. Block i is at src + i * src_stride here, and at offset + i * stride there. Strides
 * are in bytes and may be negative.
 * RANK_ERR_ARG: blocks overlap where they are written.
 * RANK_ERR_COUNT: the local blocks exceed the address space.
 * RANK_ERR_BOUNDS: the remote blocks exceed the part of peer.
 */
RANK_API rank_status_t rank_put_strided(const void *src, int64_t src_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);
RANK_API rank_status_t rank_get_strided(void *dst, int64_t dst_stride, int64_t block,
                                        int64_t count, int peer, rank_mem_t mem, int64_t offset,
                                        int64_t stride);

/*
 * Complete all that this rank has started to peer, or to RANK_ALL, on mem. Then puts and atomics are visible there,
 * and gets have their data.
 * RANK_ERR_PEER_DEAD: the peer failed, and the bytes that arrived are undefined. Each call for that peer returns it.
 *   With RANK_ALL it is returned once for each failure. The flush to the survivors is complete.
 */
RANK_API rank_status_t rank_flush(rank_mem_t mem, int peer);

/* As rank_flush, at this rank only: the buffers of nonblocking calls may be reused, and gets have their data. */
RANK_API rank_status_t rank_flush_local(rank_mem_t mem, int peer);

/* Order one-sided calls. Puts, atomics and signals on mem before it are visible at a peer before later ones to that
 * peer. The later ones may be on any memory. The call may wait as rank_flush does. */
RANK_API rank_status_t rank_fence(rank_mem_t mem);

/* ------------------------------------------------------------- rank_xfer: move lists of blocks and notify the peer */

typedef enum rank_xfer_op {
    RANK_XFER_WRITE, /* to the memory of the peer */
    RANK_XFER_READ
} rank_xfer_op_t;

/* A block of a list. A write reads local, a read writes it. Unlike a rank_piece_t it names its memory: a list has many. */
typedef struct rank_block {
    void *local;
    int64_t bytes;
    rank_mem_t mem;
    int64_t offset; /* in the peer's part of mem */
} rank_block_t;

enum { RANK_NOTICE_MAX = 4096 /* bytes of a notice */ };

/* A message that the peer receives when the list is done, by rank_recv with this tag. */
typedef struct rank_notice {
    int64_t tag;
    const void *data;
    int64_t bytes; /* at most RANK_NOTICE_MAX */
} rank_notice_t;

/*
 * Start to move n blocks to or from the memory of peer, a rank of team. Blocks may lie in any number of memories of
 * the peer. blocks, notice and its data may be reused on return, the local memory when the request is complete. A
 * write is complete when its data is visible at the peer, a read when the data is here. If all of the list has been
 * moved, the notice is sent. notice may be NULL. With n 0 there is only the notice. rank_flush, rank_rkey_close and
 * rank_free wait for the lists of a memory. If one argument or block is wrong, the call returns an error that names
 * the block, and nothing moves. A later error ends the request: no notice is sent, and what has been moved is
 * undefined.
 * RANK_ERR_HANDLE: a memory is invalid, or of another context. Later: it was closed or freed here, or is no longer registered
 *   at the peer.
 * RANK_ERR_BOUNDS: a block leaves its memory.
 * RANK_ERR_COUNT: a block, the notice or n is negative, or the notice is too long.
 * RANK_ERR_ARG: a memory is of another peer, or does not permit op.
 * RANK_ERR_NOT_SUPPORTED: memory of a block or of the notice is not host memory.
 * RANK_ERR_PEER_DEAD: the peer failed.
 * RANK_ERR_CLOSED: the connection or the team was closed.
 */
RANK_API rank_status_t rank_xfer(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                                 const rank_notice_t *notice, rank_request_t *req);

/* Create a list that can be started many times. rank_start returns RANK_ERR_HANDLE after one of the memories was
 * closed. */
RANK_API rank_status_t rank_xfer_init(rank_xfer_op_t op, const rank_block_t *blocks, int64_t n, int peer, rank_team_t team,
                                      const rank_notice_t *notice, rank_request_t *req);

/* --------------------------------------------------------- rank_atomic: atomic operations on the memory of a peer */

typedef enum rank_amo {
    RANK_AMO_ADD = 0,  /* without FETCH: result may be NULL and is not written */
    RANK_AMO_FETCH_ADD, /* FETCH and SWAP: *result is the value before */
    RANK_AMO_SWAP,
    RANK_AMO_AND,
    RANK_AMO_FETCH_AND,
    RANK_AMO_OR,
    RANK_AMO_FETCH_OR,
    RANK_AMO_XOR,
    RANK_AMO_FETCH_XOR
} rank_amo_t;

/*
 * Update one naturally aligned element in the part of peer. Types are INT32, UINT32, INT64, UINT64; of ADD,
 * FETCH_ADD and SWAP also F32 and F64. It is atomic with all atomics of the library, and with CPU atomics on the
 * peer's node. rank_flush completes an operation without a result.
 * RANK_ERR_DTYPE: the operation does not work on this type.
 * RANK_ERR_ARG: the element is not aligned.
 * RANK_ERR_NOT_SUPPORTED: operand or result is not host memory.
 */
RANK_API rank_status_t rank_atomic(rank_amo_t amo, rank_dtype_t dtype, const void *operand,
                                   int peer, rank_mem_t mem, int64_t offset, void *result);

/* Store *desired if the element has the bits of *expected. *result is the value before. Types are those of
 * RANK_AMO_SWAP.
 * RANK_ERR_NOT_SUPPORTED: expected, desired or result is not host memory. */
RANK_API rank_status_t rank_atomic_cas(rank_dtype_t dtype, const void *expected, const void *desired, int peer,
                                       rank_mem_t mem, int64_t offset, void *result);

/* ---------------------------------------------------------------- rank_signal: put with a signal, and wait for it */

typedef enum rank_signal_op {
    RANK_SIGNAL_SET = 0,
    RANK_SIGNAL_ADD
} rank_signal_op_t;

/*
 * Put, then update a signal, and wake the peer if it sleeps. The signal is a uint64_t at signal_offset, a multiple of 8,
 * in the peer's part of signal_mem. A reader of the new signal value finds the data. On return src may be reused. peer
 * is the same process in mem and signal_mem. bytes may be 0. Other puts have no order with it without rank_fence.
 */
RANK_API rank_status_t rank_put_signal(const void *src, int64_t bytes, int peer, rank_mem_t mem,
                                       int64_t offset, rank_mem_t signal_mem,
                                       int64_t signal_offset, uint64_t value,
                                       rank_signal_op_t op);

typedef enum rank_cmp {
    RANK_CMP_EQ = 0,
    RANK_CMP_NE,
    RANK_CMP_GT,
    RANK_CMP_GE,
    RANK_CMP_LT,
    RANK_CMP_LE
} rank_cmp_t;

/*
 * Wait until a uint64_t of this rank's own part compares with value as cmp requires. Numbers are unsigned. offset is a
 * multiple of 8.
 * RANK_ERR_PEER_DEAD: a rank of the team of mem failed. It is returned once for each failure.
 */
RANK_API rank_status_t rank_wait_until(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                       uint64_t value);

/* Wait as rank_wait_until does, for a signal of rank_put_signal only, from peer or RANK_ANY_SOURCE. *seen is the value
 * that ended the wait. seen may be NULL.
 * RANK_ERR_PEER_DEAD: the peer failed before it sent the signal. RANK_ANY_SOURCE: as for rank_wait_until. */
RANK_API rank_status_t rank_signal_wait(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                        uint64_t value, int peer, uint64_t *seen);

/* As rank_signal_wait, for timeout_ns at most.
 * RANK_ERR_TIMED_OUT: there was none. *seen is unchanged. */
RANK_API rank_status_t rank_signal_wait_timed(rank_mem_t mem, int64_t offset, rank_cmp_t cmp, uint64_t value, int peer,
                                              int64_t timeout_ns, uint64_t *seen);

/* Test once for what rank_signal_wait waits for, with progress. *flag is 1 or 0. *seen is written if *flag is 1. It may be NULL.
 * RANK_ERR_PEER_DEAD: as for rank_signal_wait. */
RANK_API rank_status_t rank_test_signal(rank_mem_t mem, int64_t offset, rank_cmp_t cmp,
                                        uint64_t value, int peer, int *flag, uint64_t *seen);

#ifdef __cplusplus
}
#endif

#endif
