/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank.h: declare the public interface of librank.
 *
 * Programs include this file. It includes the parts, one a group of calls, which are installed beside it.
 * doc/update.sh makes the manual pages from the comments; doc/rank3.awk explains their form.
 *
 * Conventions
 *   - Every call returns a rank_status_t. RANK_OK is 0, and every error is negative.
 *   - Exceptions return a value or a negative status: rank_team_rank, rank_team_size, rank_team_world_rank, rank_node_of,
 *     rank_thread_level, rank_dtype_size.
 *   - rank_op_defined and rank_initialized return 0 or 1. rank_status_string, rank_status_reason and rank_version return text.
 *   - rank_channel_name and rank_world return NULL on an error. rank_abort does not return.
 *   - Only rank_abort ends the process, and some errors with RANK_ERRORS=abort.
 *   - A struct that begins with size is initialized by its macro, for example RANK_INIT_OPTS_INIT. It may grow.
 *   - Inputs come first, outputs last. Outputs are written only on success, envelopes also by a truncated receive.
 *   - timeout_ns, the last input, is the most that a call waits before RANK_ERR_TIMED_OUT: 0 does not wait, but makes
 *     progress once if the call completes operations, and a negative one is for ever.
 *   - Messages and collectives count elements of the datatype. One-sided calls and a rank_iov_t count bytes.
 *   - Counts are int64_t, ranks are int, tags are int64_t >= 0.
 *   - Until a request is complete, its send buffer may be read, but not changed. A receive buffer must not be accessed.
 *   - Every rank of a team makes the team's collective calls, in the same order.
 *   - A call with the peer RANK_PROC_NULL completes at once, and writes no buffer and no result. The envelope of a receive
 *     or probe has the source RANK_PROC_NULL, the tag RANK_ANY_TAG and count 0.
 *   - Each rank_X is a weak name of prank_X (rank/prank.h). A profiling tool defines rank_X, and calls prank_X.
 *
 * Completion
 *   - A blocking call returns when its operation is complete at this rank.
 *   - A completed send means that its buffer is free. The receiver may not have the data yet.
 *   - A completed receive means that the data is in the buffer.
 *   - A completed put means that its buffer is free. rank_flush makes the data visible at the peer.
 *   - A completed collective means that this rank's part is done. Only a barrier synchronizes all ranks.
 *   - If a peer fails, operations that need it complete with RANK_ERR_PEER_DEAD. Others continue.
 *
 * Thread safety
 *   - SINGLE, FUNNELED, SERIALIZED: the caller ensures that no two calls run at the same time.
 *   - MULTIPLE: any thread may call at any time, also while other threads wait in calls.
 *   - At MULTIPLE one thread at a time uses a request, a probed message or a buffer.
 *   - At MULTIPLE the collective calls on one team still have one order.
 *   - The caller frees no object that another thread uses. rank_init and rank_finalize run alone.
 *   - Any thread may call at any time: rank_status_string, rank_status_reason, rank_version, rank_wtime, rank_initialized,
 *     rank_abort, rank_reduce_local, and the calls that make and free datatypes and operations.
 *
 * Errors
 *   - Argument errors are found before any data moves or any process starts. They change nothing.
 *   - RANK_ERR_HANDLE: a team, memory, request or message is null, freed or of another kind.
 *   - RANK_ERR_RANK, RANK_ERR_TAG, RANK_ERR_DTYPE, RANK_ERR_OP: the argument of that name is invalid.
 *   - RANK_ERR_COUNT: a count is negative, or exceeds the address space.
 *   - RANK_ERR_BOUNDS: a one-sided call reaches outside the memory of the peer.
 *   - RANK_ERR_ARG: a needed pointer is NULL, or any other argument is invalid.
 *   - A debug build of the library (configure --enable-debug) also finds buffers that overlap: RANK_ERR_ARG.
 *   - RANK_ERR_STATE: the call is not allowed now, for example before rank_init, or in a forked child.
 *   - A call that reaches a peer may also return the five that follow.
 *   - RANK_ERR_PEER_DEAD: the peer has failed.
 *   - RANK_ERR_CLOSED: the other side of a connection (rank_connect) has closed it.
 *   - RANK_ERR_UNREACHABLE: no channel leads to the peer, or its host does not answer. The peer may live.
 *   - RANK_ERR_NO_MEMORY: out of memory. RANK_ERR_CHANNEL: the channel itself failed.
 *   - A nonblocking call that returns such an error creates no request. If it occurs later, the test or wait call reports it.
 *   - One-sided calls without a request report it in the next rank_flush.
 */
#ifndef RANK_H
#define RANK_H

#include "rank/types.h"
#include "rank/team.h"
#include "rank/p2p.h"
#include "rank/request.h"
#include "rank/rma.h"
#include "rank/coll.h"
#include "rank/coll_init.h"
#include "rank/device.h"
#include "rank/queue.h"
#include "rank/conn.h"

#endif
