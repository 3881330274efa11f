/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.h: declare tagged messages. Part of rank.h. */
#ifndef RANK_P2P_H
#define RANK_P2P_H

#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------- rank_send: send and receive messages */

/* Send a message. The call returns when buf may be reused. Messages between two ranks on one team are received in the
 * order sent, if one receive could match them. A message longer than RANK_EAGER_MAX waits for its receive, or until
 * a blocked receiver buffers it (RANK_RNDV_UNEXPECTED_MAX). */
RANK_API rank_status_t rank_send(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team);

/* Send a message, and return only after a receive has matched it. */
RANK_API rank_status_t rank_ssend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team);

/*
 * Receive a message from peer or RANK_ANY_SOURCE, with tag or RANK_ANY_TAG. envelope may be NULL.
 * RANK_ERR_TRUNCATED: the message is longer than count. The first count elements are in buf, the rest is lost.
 * RANK_ERR_PEER_DEAD: the peer failed before it sent a matching message. With RANK_ANY_SOURCE each failure in the team
 *   ends all pending wildcard receives and probes once. If none is pending, the failure ends the next one. If no
 *   other rank of the team lives, each one ends at once.
 */
RANK_API rank_status_t rank_recv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                 int64_t tag, rank_team_t team, rank_envelope_t *envelope);

/* Start a send or a receive. A test or wait call completes *req and frees it. The buffers of pending receives must
 * not overlap. */
RANK_API rank_status_t rank_isend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_issend(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                   int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecv(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                  int64_t tag, rank_team_t team, rank_request_t *req);

/* Send and receive at the same time. Cannot deadlock with the same call on other ranks. envelope may be NULL.
 * Returns the status of the receive, or that of the send if the receive succeeded. */
RANK_API rank_status_t rank_sendrecv(const void *sbuf, int64_t scount, rank_dtype_t sdtype,
                                     int dest, int64_t stag, void *rbuf, int64_t rcount,
                                     rank_dtype_t rdtype, int source, int64_t rtag,
                                     rank_team_t team, rank_envelope_t *envelope);

/* ------------------------------------------------------------ rank_probe: inspect a message before it is received */

/* Wait for a matching message, without receiving it.
 * RANK_ERR_PEER_DEAD: as for rank_recv. */
RANK_API rank_status_t rank_probe(int peer, int64_t tag, rank_team_t team,
                                  rank_envelope_t *envelope);

/* As rank_probe, without waiting. *found is 1 if there is a message, else 0. */
RANK_API rank_status_t rank_iprobe(int peer, int64_t tag, rank_team_t team, int *found,
                                   rank_envelope_t *envelope);

/* As rank_probe, and claim the message: no other receive or probe matches it. rank_mrecv or rank_imrecv receives
 * *message, once. Until then its sender may wait. */
RANK_API rank_status_t rank_mprobe(int peer, int64_t tag, rank_team_t team,
                                   rank_message_t *message, rank_envelope_t *envelope);

/* As rank_mprobe, for timeout_ns at most.
 * RANK_ERR_TIMED_OUT: there was none. *message is unchanged. */
RANK_API rank_status_t rank_mprobe_timed(int peer, int64_t tag, rank_team_t team, int64_t timeout_ns,
                                         rank_message_t *message, rank_envelope_t *envelope);

/* As rank_mprobe, without waiting. *found is 0 and *message is unchanged if there is none. */
RANK_API rank_status_t rank_improbe(int peer, int64_t tag, rank_team_t team, int *found,
                                    rank_message_t *message, rank_envelope_t *envelope);

/* Receive the message and set *message to RANK_MESSAGE_NULL.
 * RANK_ERR_PEER_DEAD: the sender failed before it delivered the data. */
RANK_API rank_status_t rank_mrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                  rank_message_t *message, rank_envelope_t *envelope);
RANK_API rank_status_t rank_imrecv(void *buf, int64_t count, rank_dtype_t dtype,
                                   rank_message_t *message, rank_request_t *req);

/* ------------------------------------------------------------------ rank_sendv: send and receive scattered memory */

/* count blocks of bytes bytes. The first is at base. Each next one is stride bytes further. stride may be negative.
 * count 0 has the meaning of 1. {.base = p, .bytes = n} is n bytes at p. {.base = &a[0][j], .bytes = 8, .count = rows,
 * .stride = 8 * cols} is column j of a matrix of doubles. */
typedef struct rank_iov {
    void *base;
    int64_t bytes;
    int64_t count;
    int64_t stride;
} rank_iov_t;

/*
 * Send or receive n pieces, in order, as one message of bytes. It matches receives and sends of any form, rank_recv and
 * rank_send included. Pieces may be empty, and n may be 0. Envelopes count bytes. Truncation is that of rank_recv.
 * The list belongs to the library until the request is complete. Pieces of a receive must not overlap.
 * RANK_ERR_COUNT: a number is negative, or a piece or the sum exceeds the address space.
 * RANK_ERR_ARG: a base is NULL, or pieces of a receive overlap.
 */
RANK_API rank_status_t rank_sendv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                  rank_team_t team);
RANK_API rank_status_t rank_recvv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                  rank_team_t team, rank_envelope_t *envelope);
RANK_API rank_status_t rank_isendv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_irecvv(const rank_iov_t *iov, int64_t n, int peer, int64_t tag,
                                   rank_team_t team, rank_request_t *req);

/* ------------------------------------------------------------------------------ rank_start: persistent operations */

/* Create an operation that can be started many times. It is not started. After a test or wait call has completed it,
 * it can be started again. rank_request_free frees it. */
RANK_API rank_status_t rank_send_init(const void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);
RANK_API rank_status_t rank_ssend_init(const void *buf, int64_t count, rank_dtype_t dtype,
                                       int peer, int64_t tag, rank_team_t team,
                                       rank_request_t *req);
RANK_API rank_status_t rank_recv_init(void *buf, int64_t count, rank_dtype_t dtype, int peer,
                                      int64_t tag, rank_team_t team, rank_request_t *req);

/*
 * Start one persistent operation, or n in array order. rank_startall starts none if one of them is invalid, pending,
 * or named twice.
 * RANK_ERR_STATE: the operation is already started.
 * RANK_ERR_HANDLE: the request is not persistent, or its team has been freed.
 */
RANK_API rank_status_t rank_start(rank_request_t *req);
RANK_API rank_status_t rank_startall(int64_t n, rank_request_t *reqs);

#ifdef __cplusplus
}
#endif

#endif
