/* text_file.c: see text_file.h. */
#include "launcher/util/text_file.h"
#include "lib/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)64 << 20)
#define NOBODY_MS 2000  /* for somebody to open the other end of a pipe */
#define SILENT_MS 60000 /* for what is open to say something more */
#define LOOK_MS 50      /* nothing tells that somebody has opened the other end */

struct source {
    int fd;
    bool fifo, terminal;
    uint64_t begin_ns;
    char *why;
    size_t whylen;
};

static bool fail(struct source *s, const char *what)
{
    snprintf(s->why, s->whylen, "%s", what);
    return false;
}

/* Of a pipe that has said nothing and has no writer: shall one more look be taken? False: it is at its end, or the
 * time is over. */
static bool await_writer(struct source *s, bool *over)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};

    *over = false;
    if (poll(&p, 1, LOOK_MS) > 0)
        return !(p.revents & POLLHUP) || (p.revents & POLLIN);
    *over = rk_clock_ns() - s->begin_ns > NOBODY_MS * (uint64_t)1000000;
    return !*over;
}

/* Something has opened it, and will say more. */
static bool await_more(struct source *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    int n;

    do
        n = poll(&p, 1, s->terminal ? -1 : SILENT_MS);
    while (n < 0 && errno == EINTR);
    return n > 0 ? true : fail(s, "nothing came from it for 60 s");
}

/* False: it has failed. *n is 0 at the end. */
static bool take_some(struct source *s, bool first, char *to, size_t room, size_t *n)
{
    for (;;) {
        ssize_t got = read(s->fd, to, room);
        bool over;
        *n = got > 0 ? (size_t)got : 0;
        if (got > 0 || (got == 0 && !(first && s->fifo)))
            return true;
        if (got == 0 && !await_writer(s, &over))
            return over ? fail(s, "nobody writes to it") : true;
        if (got < 0 && errno == EAGAIN && !await_more(s))
            return false;
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return fail(s, strerror(errno));
    }
}

static bool take_all(struct source *s, struct xr_text_file *f)
{
    size_t cap = 0, n;

    do {
        if (f->len + 1 >= cap) {
            char *more = realloc(f->data, cap = cap ? 2 * cap : 4096);
            if (!more)
                return fail(s, "out of memory");
            f->data = more;
        }
        if (!take_some(s, f->len == 0, f->data + f->len, cap - f->len - 1, &n))
            return false;
        f->len += n;
        if (f->len > MAX_BYTES)
            return fail(s, "it is larger than 64 MiB, which no such file is");
    } while (n);
    f->data[f->len] = '\0';
    return true;
}

bool xr_text_file_read(const char *path, struct xr_text_file *out, char *why, size_t whylen)
{
    struct source s = {.why = why, .whylen = whylen, .begin_ns = rk_clock_ns()};
    struct stat st;
    bool ok;

    memset(out, 0, sizeof(*out));
    s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (s.fd < 0 || fstat(s.fd, &st)) {
        fail(&s, strerror(errno));
        if (s.fd >= 0)
            close(s.fd);
        return false;
    }
    s.fifo = S_ISFIFO(st.st_mode);
    s.terminal = isatty(s.fd);
    ok = take_all(&s, out);
    close(s.fd);
    return ok;
}

char *xr_text_file_line(struct xr_text_file *f)
{
    char *line, *end;
    size_t len;

    if (f->at >= f->len)
        return NULL;
    line = f->data + f->at;
    end = memchr(line, '\n', f->len - f->at);
    len = end ? (size_t)(end - line) : f->len - f->at;
    f->at += len + 1;
    f->number++;
    line[len] = '\0';
    f->nul = strlen(line) < len;
    if (!f->nul && len && line[len - 1] == '\r')
        line[len - 1] = '\0';
    return line;
}

void xr_text_file_free(struct xr_text_file *f)
{
    if (!f)
        return;
    free(f->data);
    memset(f, 0, sizeof(*f));
}
