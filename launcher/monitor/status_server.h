/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_server.h: answer xrun --status at a socket of the running xrun.
 *
 * Room: signs of life: the heartbeat, xrun --status, and what a process does.
 * Called by: agent, frontend, main.c.
 * Never: ends a job or a process; that is the front end's decision.
 * Tests: tests/launcher/{heartbeat,hang}.sh, {hang,status_board}_test.c.
 *
 * A client must be of this user or of root, send one of two requests, and read the
 * answer within a few seconds. Other connections are closed. None delays the job.
 */
#ifndef XR_LAUNCHER_MONITOR_STATUS_SERVER_H
#define XR_LAUNCHER_MONITOR_STATUS_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_status;

struct xr_status_ops {
    /* A client requests the status. Answer with xr_status_answer, now or later. */
    void (*on_request)(void *arg);
    /* Describe the job in one line, with its newline. */
    void (*summary)(void *arg, char *out, size_t len);
};

/* The two requests: all ranks, or the summary. */
#define XR_STATUS_REQUEST "status\n"
#define XR_STATUS_SUMMARY "jobs\n"
/* The last line of a complete answer. */
#define XR_STATUS_END "end\n"

/* Open the socket of a job. Returns NULL with errno on failure; the job runs without it. */
struct xr_status *xr_status_open(struct event_base *base, const char *job,
                                 const struct xr_status_ops *ops, void *arg);
/* Removes the socket. No-op if NULL. */
void xr_status_close(struct xr_status *status);

/* Return whether a client is connected. */
bool xr_status_busy(const struct xr_status *status);
/* Answer all clients that wait. */
void xr_status_answer(struct xr_status *status, const char *text, size_t len);
/* Return the number of connections that were closed without a valid request. */
uint64_t xr_status_rejected(const struct xr_status *status);

/* Run xrun --status [JOB]: send the request, print the answer. Returns the exit code. See status_client.c. */
int xr_status_main(const char *job);

#endif
