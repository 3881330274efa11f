/* splice.c: see splice.h. */
#include "launcher/iof/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TAIL = 4096 }; /* bytes in which a line is expected to end */

struct xr_splicer {
    int in, out; /* a pipe, empty between calls */
    int null;
    char tail[TAIL];
};

struct xr_splicer *xr_splicer_open(size_t bytes)
{
    struct xr_splicer *s = malloc(sizeof(*s));
    int ends[2];

    if (!s)
        return NULL;
    s->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (s->null < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
        if (s->null >= 0)
            close(s->null);
        free(s);
        return NULL;
    }
    s->out = ends[0];
    s->in = ends[1];
    fcntl(s->in, F_SETPIPE_SZ, (int)bytes); /* else less is lent at a time */
    return s;
}

void xr_splicer_close(struct xr_splicer *s)
{
    if (!s)
        return;
    close(s->in);
    close(s->out);
    if (s->null >= 0)
        close(s->null);
    free(s);
}

/* What does not go away would be taken for the next one's. */
static bool drop(struct xr_splicer *s, size_t n)
{
    while (n) {
        ssize_t k = splice(s->out, NULL, s->null, NULL, n, SPLICE_F_MOVE);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        n -= (size_t)k;
    }
    return true;
}

static bool read_tail(struct xr_splicer *s, size_t n)
{
    for (size_t have = 0; have < n;) {
        ssize_t k = read(s->out, s->tail + have, n - have);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        have += (size_t)k;
    }
    return true;
}

size_t xr_splicer_lines(struct xr_splicer *s, int fd, size_t least)
{
    const char *nl;
    size_t tail;
    int there = 0;
    ssize_t lent;

    if (s->null < 0 || ioctl(fd, FIONREAD, &there) || (size_t)there < least)
        return 0;
    lent = tee(fd, s->in, (size_t)there, SPLICE_F_NONBLOCK);
    if (lent <= 0)
        return 0;
    tail = lent < TAIL ? (size_t)lent : TAIL;
    if (!drop(s, (size_t)lent - tail) || !read_tail(s, tail)) {
        /* Not to be used again: nobody knows what is in there. */
        close(s->null);
        s->null = -1;
        return 0;
    }
    nl = memrchr(s->tail, '\n', tail);
    return nl ? (size_t)lent - tail + (size_t)(nl - s->tail) + 1 : 0;
}
