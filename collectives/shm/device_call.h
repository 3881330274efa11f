/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_call.h: run a collective of one node on its devices, without the host.
 *
 * A part of a call of direct.h, for the algorithm "device". The posts have the kind of each rank's buffers. If all are
 * device memory, each rank maps what it is to read, and votes. If all could, the call runs on the devices. Otherwise the
 * buffers go to host memory, and slices move them. The decision is the same on all ranks.
 *
 * - Movers read each block from the exported buffer of its owner, by one copy (device_move.c).
 * - Kernels reduce the inputs where they are, if each rank could map those (device_operands.c), or else copies of them in
 *   scratch memory (device_reduce.c).
 */
#ifndef RK_COLLECTIVES_SHM_DEVICE_CALL_H
#define RK_COLLECTIVES_SHM_DEVICE_CALL_H

#include "collectives/coll_kind.h"
#include "lib/core/describe.h"
#include "lib/core/peer_device.h"
#include "lib/mem/kind.h"

struct rk_direct;
struct rk_device_scratch;

enum rk_device_buffers { RK_DEVICE_UNUSED, RK_DEVICE_IN_HOST, RK_DEVICE_ALL /* all that this rank uses */ };
enum rk_device_vote {
    RK_DEVICE_VOTED = 1,
    RK_DEVICE_CAN = 2,       /* move blocks, or reduce scratch memory */
    RK_DEVICE_CAN_INPUTS = 4 /* reduce inputs where they are */
};

/* An exported buffer. */
struct rk_device_name {
    uint64_t name, offset;
};

/* What a rank posts. */
struct rk_device_post {
    uint32_t buffers; /* enum rk_device_buffers */
    uint32_t kind;    /* enum rank_mem_kind of the buffers */
    uint32_t staged;  /* some of them are device memory that goes through the host */
    uint32_t able;    /* it has a kernel and scratch memory for the call, or its input is exported */
    uint32_t len;     /* of the handle of its scratch memory */
    uint64_t device;  /* that its kernels run on; 0: not known */
    uint64_t longest; /* own block, if ranks do not know those of others; else 0 */
    struct rk_device_name input, result; /* name 0: not exported */
    unsigned char handle[RK_KIND_HANDLE_MAX];
    _Atomic uint32_t vote;                     /* enum rk_device_vote; 0: not yet */
    _Atomic uint64_t filled, reduced, emptied; /* rounds of a reduction */
};

struct rk_device_call {
    struct rk_stage *stage; /* NULL: all buffers of this rank are host memory */
    const struct rk_kind *kind;
    const struct rk_view_ops *ops; /* of views of that kind */
    enum rk_device_buffers buffers;
    char *host_sbuf, *host_rbuf, *sbuf, *rbuf;
    size_t sent, received; /* bytes of sbuf and rbuf */
    bool asks; /* all ranks vote */
    rank_dtype_t dtype;
    rank_op_t op;
    bool has_kernel;
    bool reads_inputs; /* kernels read the inputs where they are, and write an allreduce to the result */
    struct rk_device_scratch *scratch; /* of a reduction; NULL: none */
    char *own_scratch;                 /* this rank's part of it */
    struct rk_span *blocks;            /* of a reduction with a block for each rank; NULL: one block for all */
    uint64_t round;
    enum { RK_DEVICE_FILL, RK_DEVICE_REDUCE, RK_DEVICE_EMPTY } phase;
};

/* Add what a call needs that may run on devices. Its stage waits for the decision. NULL: out of memory, a failure of s. */
struct rk_device_call *rk_device_add(struct rk_sched *s, const struct rk_coll_call *c, struct rk_arena *a);
/* Fill the own post. */
void rk_device_post(const struct rk_direct *x, struct rk_device_post *post);
/* Once all posts are there: map what this rank reads, and vote. */
void rk_device_vote(const struct rk_direct *x);
bool rk_device_have_voted(const struct rk_direct *x);
/* Name the members that it waits for: with their votes, or in a reduction. */
void rk_device_describe(const struct rk_direct *x, struct rk_wait_for *out);

/*
 * Once all have voted: RK_DEVICE_RUNS if the call runs on the devices; RK_DEVICE_HOST: some rank has device buffers, and
 * the input of this rank, if it is one of them, is now in host memory. The same on all ranks.
 */
enum rk_device_way { RK_DEVICE_NONE, RK_DEVICE_RUNS, RK_DEVICE_HOST };
enum rk_device_way rk_device_decide(struct rk_direct *x, rank_status_t *status);
/* The call is over, or fails: its input is exported no longer. */
void rk_device_end(const struct rk_direct *x);
/* The same for a team's last call, which may have failed. */
void rk_device_end_of_team(struct rank_team *team);

/* device_move.c */

/* Can this rank map all that it reads? */
bool rk_device_may_read(const struct rk_direct *x);
/* Copy from the input of rank r. RK_AGAIN: that rank is dead, and the call will fail. */
rank_status_t rk_device_read(const struct rk_direct *x, int r, size_t from, char *to, size_t bytes);

/* device_operands.c */

/* NULL: that rank is dead, or device memory does not go by the channel to it. */
struct rk_peer *rk_device_peer(const struct rk_direct *x, int r);
/* Status of a call in which reading from rank r has failed. RK_AGAIN: that rank is dead. */
rank_status_t rk_device_read_failed(const struct rk_direct *x, int r, rank_status_t st);
/* The lowest rank that has the device of rank r: it reduces for it. */
int rk_device_reducer_of(const struct rk_direct *x, int r);
/* Where kernels of this rank write, if they read the inputs where they are. */
char *rk_device_result(const struct rk_direct *x);
/* Can this rank map the inputs that its kernels read, and the results that it copies? */
bool rk_device_may_reduce_inputs(const struct rk_direct *x);
/* Reduce bytes of all inputs from at on. RK_AGAIN: as rk_device_read. */
rank_status_t rk_device_reduce_inputs(const struct rk_direct *x, char *to, size_t at, size_t bytes);
/* Copy bytes of the result of an allreduce from rank r to the same place here. RK_AGAIN: as rk_device_read. */
rank_status_t rk_device_read_result(const struct rk_direct *x, int r, size_t at, size_t bytes);

/* device_reduce.c */

/* Set what a reduction needs. */
void rk_device_add_reduction(struct rk_sched *s, struct rk_device_call *d, const struct rk_coll_call *c, struct rk_arena *a);
void rk_device_post_scratch(const struct rk_device_call *d, struct rk_device_post *post);
/* Map the scratch memory of all, once a team. */
bool rk_device_map_scratch(const struct rk_direct *x);
/* Advance without waiting for other ranks. True: this rank has its result. On an error the call fails: see *status. */
bool rk_device_reduce(const struct rk_direct *x, rank_status_t *status);
/* Does it wait for rank r? */
bool rk_device_waits_for(const struct rk_direct *x, int r);
/* Release a team's scratch memory. No-op if NULL. */
void rk_device_scratch_free(struct rk_device_scratch *scratch);

#endif
