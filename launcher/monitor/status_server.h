/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_server.h: the socket at which a running xrun answers xrun --status.
 *
 * Whoever connects must be this user (or root), say one of two words, and read
 * what he gets within a few seconds. Anybody and anything else gets a close, and
 * never keeps the job waiting.
 */
#ifndef XR_LAUNCHER_MONITOR_STATUS_SERVER_H
#define XR_LAUNCHER_MONITOR_STATUS_SERVER_H

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xr_status;

struct xr_status_ops {
    /* Somebody asks: give the answer by xr_status_answer, now or later. */
    void (*asked)(void *arg);
    /* The job in one line, with its newline. */
    void (*head)(void *arg, char *out, size_t len);
};

/* What clients say. */
#define XR_STATUS_ASK "status\n"
#define XR_STATUS_HEAD "jobs\n"
/* The last line of an answer that is whole. */
#define XR_STATUS_END "end\n"

/* NULL: there is no such socket, and errno says why; the job does without. */
struct xr_status *xr_status_open(struct event_base *base, const char *job,
                                 const struct xr_status_ops *ops, void *arg);
/* Removes the socket. NULL is fine. */
void xr_status_close(struct xr_status *status);

/* Is anybody connected? */
bool xr_status_busy(const struct xr_status *status);
/* For all who have asked and have no answer yet. */
void xr_status_answer(struct xr_status *status, const char *text, size_t len);
/* Connections that were closed for what they said or did not say. */
uint64_t xr_status_strangers(const struct xr_status *status);

/* ask.c: xrun --status [JOB]: ask, print the answer; returns the exit code. */
int xr_ask(const char *job);

#endif
