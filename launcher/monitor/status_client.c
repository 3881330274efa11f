/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * status_client.c: run xrun --status. See status_server.h.
 */
#include "launcher/job/timeouts.h"
#include "launcher/monitor/rundir.h"
#include "launcher/monitor/status_server.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_ROOM 4096

struct answer {
    char *text;
    size_t len, cap;
};

/* Send a request and read until the other end closes. Returns NULL if the answer is late or incomplete. Caller frees. */
static char *request_status(int fd, const char *request, uint32_t limit_ms)
{
    uint64_t deadline = rk_clock_ns() + limit_ms * 1000000ull;
    const size_t end = strlen(XR_STATUS_END);
    struct answer a = {0};
    bool over = false;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        return NULL;
    while (!over) {
        uint64_t now = rk_clock_ns();
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (a.cap - a.len < READ_ROOM) {
            char *more = realloc(a.text, a.cap + 16 * READ_ROOM);
            if (!more)
                break;
            a.text = more;
            a.cap += 16 * READ_ROOM;
        }
        if (now >= deadline || poll(&p, 1, (int)((deadline - now) / 1000000) + 1) == 0)
            break;
        n = recv(fd, a.text + a.len, a.cap - a.len - 1, MSG_DONTWAIT);
        if (n > 0)
            a.len += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            over = true;
    }
    if (!over || a.len < end || memcmp(a.text + a.len - end, XR_STATUS_END, end) != 0) {
        free(a.text);
        return NULL;
    }
    a.text[a.len - end] = '\0';
    return a.text;
}

/* ------------------------------------------------------------------------- all jobs */

static void print_summary(void *arg, const char *job, int fd)
{
    char *text = request_status(fd, XR_STATUS_SUMMARY, XR_STATUS_LIST_MS);
    int *n = arg;

    close(fd);
    ++*n;
    if (text)
        fputs(text, stdout);
    else
        printf("%s: does not answer (is its xrun stopped?)\n", job);
    free(text);
}

/* ---------------------------------------------------------------------------- one */

struct job_search {
    const char *wanted; /* a name, or a part of one */
    char *job;          /* the match */
    int fd, found;      /* its connection; number of matches */
    bool exact;
};

static void match_job(void *arg, const char *job, int fd)
{
    struct job_search *s = arg;
    bool exact = strcmp(job, s->wanted) == 0;

    if (s->exact || !strstr(job, s->wanted)) {
        close(fd);
        return;
    }
    s->found = exact ? 1 : s->found + 1;
    s->exact = exact;
    if (s->fd >= 0)
        close(s->fd);
    free(s->job);
    s->fd = fd;
    s->job = strdup(job);
}

static int print_one(const char *job)
{
    struct job_search s = {.wanted = job, .fd = -1};
    char *text = NULL;
    int code = 1;

    xr_rundir_each(match_job, &s);
    if (s.found == 0) {
        rk_error("no job of yours on this host has %s in its name; xrun --status lists them", job);
    } else if (s.found > 1) {
        rk_error("%d jobs of yours have %s in their names; give more of it (xrun --status lists "
                 "them)",
                 s.found, job);
    } else if (!(text = request_status(s.fd, XR_STATUS_REQUEST, XR_STATUS_CLIENT_MS))) {
        rk_error("the job %s does not answer (is its xrun stopped?)", s.job ? s.job : job);
    } else {
        fputs(text, stdout);
        code = 0;
    }
    free(text);
    free(s.job);
    if (s.fd >= 0)
        close(s.fd);
    return code;
}

int xr_status_main(const char *job)
{
    int n = 0, code = 0;

    if (job)
        code = print_one(job);
    else
        xr_rundir_each(print_summary, &n);
    if (!job && n == 0)
        puts("no job of yours runs on this host");
    if (fflush(stdout) || ferror(stdout)) {
        rk_error("cannot write to standard output: %m");
        code = 1;
    }
    return code;
}
