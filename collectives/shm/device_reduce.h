/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_reduce.h: reduce buffers in device memory by kernels, on one node.
 *
 * A part of a call of direct.h: an allreduce of which all ranks have device buffers. Each rank of the team has a block
 * of scratch memory on its device, which the others map. A round copies a piece of each input to the scratch memory,
 * reduces a slice of it on each rank, and copies the slices to the results. No data passes through the host.
 *
 * The posts decide. In a team's first such call the ranks exchange the handles of their scratch memory and map it; the
 * call itself goes through host memory. Later ones run on the devices if all ranks could map all of it.
 */
#ifndef RK_COLLECTIVES_SHM_DEVICE_REDUCE_H
#define RK_COLLECTIVES_SHM_DEVICE_REDUCE_H

#include "collectives/select.h"
#include "collectives/shm/arena.h"
#include "lib/core/describe.h"
#include "lib/mem/kind.h"

enum { RK_DEVICE_BYTES = 64 << 10 /* shortest block */ };

struct rk_direct;
struct rk_device_call;
struct rk_device_scratch;

/* May calls of this case and algorithm run on devices, from RK_DEVICE_BYTES on? */
bool rk_device_may_reduce(const struct rk_case *c, const struct rk_algo *algo);

/* What a rank posts. */
struct rk_device_post {
    uint32_t present; /* this rank has not copied its input to the host */
    uint32_t ready;   /* it has mapped all scratch memory, and has a kernel for the call */
    uint32_t len;     /* of the handle; 0: no scratch memory */
    unsigned char handle[RK_KIND_HANDLE_MAX];
    _Atomic uint64_t filled, reduced, emptied; /* rounds */
};

/* Could the call run on devices, as far as this rank knows? Then its stage waits for the decision. NULL: no. */
struct rk_device_call *rk_device_add(struct rk_sched *s, const struct rk_coll_call *c, struct rk_arena *a);

/* Fill the own post. d NULL: this rank has no device buffers. */
void rk_device_post(struct rk_device_call *d, struct rk_device_post *post);

/*
 * Once all posts are there: RK_DEVICE_RUNS if the call runs on the devices; RK_DEVICE_HOST: some rank has device
 * buffers, and the input of this rank, if it is one of them, is now in host memory. The same on all ranks.
 */
enum rk_device_way { RK_DEVICE_NONE, RK_DEVICE_RUNS, RK_DEVICE_HOST };
enum rk_device_way rk_device_decide(const struct rk_direct *x, rank_status_t *status);

/* Advance without waiting for other ranks. True: this rank has its result. On an error the call fails: see *status. */
bool rk_device_work(const struct rk_direct *x, rank_status_t *status);
/* Name the members that it waits for. */
void rk_device_describe(const struct rk_direct *x, struct rk_wait_for *out);

/* Release a team's scratch memory. No-op if NULL. */
void rk_device_scratch_free(struct rk_device_scratch *scratch);

#endif
