/* SPDX-License-Identifier: BSD-3-Clause */
/* status_client.c: xrun --status: ask running jobs. See status_server.h. */
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

/* All that comes until the other end closes; NULL if it does not come in time, or is not whole. */
static char *status_client_ask(int fd, const char *word, uint32_t patience_ms)
{
    uint64_t deadline = rk_clock_ns() + patience_ms * 1000000ull;
    const size_t end = strlen(XR_STATUS_END);
    struct answer a = {0};
    bool over = false;

    if (send(fd, word, strlen(word), MSG_NOSIGNAL) != (ssize_t)strlen(word))
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

static void list_one(void *arg, const char *job, int fd)
{
    char *text = status_client_ask(fd, XR_STATUS_HEAD, XR_STATUS_LIST_MS);
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

struct search {
    const char *wanted;
    char *job; /* the one that is meant */
    int fd, found;
    bool exact;
};

static void status_client_look_at(void *arg, const char *job, int fd)
{
    struct search *s = arg;
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

static int ask_one(const char *job)
{
    struct search s = {.wanted = job, .fd = -1};
    char *text = NULL;
    int code = 1;

    xr_rundir_each(status_client_look_at, &s);
    if (s.found == 0) {
        rk_error("no job of yours on this host has %s in its name; xrun --status lists them", job);
    } else if (s.found > 1) {
        rk_error("%d jobs of yours have %s in their names; give more of it (xrun --status lists "
                 "them)",
                 s.found, job);
    } else if (!(text = status_client_ask(s.fd, XR_STATUS_ASK, XR_STATUS_CLIENT_MS))) {
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

int xr_ask(const char *job)
{
    int n = 0, code = 0;

    if (job)
        code = ask_one(job);
    else
        xr_rundir_each(list_one, &n);
    if (!job && n == 0)
        puts("no job of yours runs on this host");
    if (fflush(stdout) || ferror(stdout)) {
        rk_error("cannot write to standard output: %m");
        code = 1;
    }
    return code;
}
