/* SPDX-License-Identifier: BSD-3-Clause */
/* out_files.c: see out_files.h. */
#include "launcher/iof/out_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    struct xr_out_files *all;
    struct xr_stream *stream; /* NULL: it cannot be written */
    int fd;
};

struct xr_out_files {
    char *dir;
    uint32_t n;
    struct file *files; /* two a rank */
    bool lost;
    void (*on_lost)(void *arg, const char *file, int error);
    void *arg;
};

/* Pad rank numbers to equal width, so that a listing is in their order. */
static char *name_of(const char *dir, uint32_t n, uint32_t rank, int stream)
{
    char *path, last[16];
    int width = snprintf(last, sizeof(last), "%u", n - 1);

    if (asprintf(&path, "%s/rank.%0*u.%s", dir, width, rank, stream == 1 ? "out" : "err") < 0)
        return NULL;
    return path;
}

/* Make dir and its parents. */
static bool make_dirs(const char *dir, char *err, size_t errlen)
{
    char *path = strdup(dir);
    struct stat st;
    bool ok = path != NULL;

    for (char *p = path; ok && *p;) {
        char c;
        p += strspn(p, "/");
        p += strcspn(p, "/");
        c = *p;
        *p = '\0';
        ok = mkdir(path, 0777) == 0 || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
        if (!ok)
            snprintf(err, errlen, "--output-dir %s: cannot make the directory %s: %s", dir, path,
                     strerror(errno));
        *p = c;
    }
    if (!path)
        snprintf(err, errlen, "out of memory");
    free(path);
    return ok;
}

static bool make_file(const char *path, char *err, size_t errlen)
{
    /* Nonblocking: do not wait for the reader of a FIFO. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    struct stat st;
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

    if (!ok)
        snprintf(err, errlen, "--output-dir: cannot write %s: %s", path,
                 fd >= 0 ? "it is not a file" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

bool xr_out_files_make(const char *dir, uint32_t n, char *err, size_t errlen)
{
    bool ok = make_dirs(dir, err, errlen);

    for (uint32_t i = 0; ok && i < 2 * n; i++) {
        char *path = name_of(dir, n, i / 2, (int)(i % 2) + 1);
        if (!path)
            snprintf(err, errlen, "out of memory");
        ok = path && make_file(path, err, errlen);
        free(path);
    }
    return ok;
}

/* ------------------------------------------------------------------- writing */

static void out_files_lose(struct file *f, int error)
{
    struct xr_out_files *od = f->all;
    uint32_t i = (uint32_t)(f - od->files);
    char *path;

    if (od->lost)
        return;
    od->lost = true;
    path = name_of(od->dir, od->n, i / 2, (int)(i % 2) + 1);
    od->on_lost(od->arg, path ? path : od->dir, error);
    free(path);
}

static void out_files_on_drained(void *arg)
{
    (void)arg; /* files never lag behind */
}

static void out_files_on_broken(void *arg, struct xr_stream *stream, int error)
{
    (void)stream;
    out_files_lose(arg, error);
}

static const struct xr_stream_ops stream_ops = {out_files_on_drained, out_files_on_broken};

rank_status_t xr_out_files_open(struct event_base *base, const char *dir, uint32_t n,
                                 const struct xr_label *label,
                                 void (*on_lost)(void *arg, const char *file, int error), void *arg,
                                 struct xr_out_files **out)
{
    struct xr_out_files *od = calloc(1, sizeof(*od));
    rank_status_t st = RANK_OK;

    if (!od)
        return RANK_ERR_NO_MEMORY;
    od->on_lost = on_lost;
    od->arg = arg;
    od->dir = strdup(dir);
    od->files = calloc(2 * (size_t)n, sizeof(*od->files));
    if (!od->dir || !od->files) {
        xr_out_files_close(od);
        return RANK_ERR_NO_MEMORY;
    }
    od->n = n;
    for (uint32_t i = 0; i < 2 * n; i++)
        od->files[i] = (struct file){.all = od, .fd = -1};
    for (uint32_t i = 0; !st && i < 2 * n; i++) {
        struct file *f = &od->files[i];
        char *path = name_of(dir, n, i / 2, (int)(i % 2) + 1);
        if (path)
            f->fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC);
        if (!path)
            st = RANK_ERR_NO_MEMORY;
        else if (f->fd < 0)
            out_files_lose(f, errno);
        else
            st = xr_stream_open(base, f->fd, label, &stream_ops, f, &f->stream);
        free(path);
    }
    if (st) {
        xr_out_files_close(od);
        return st;
    }
    *out = od;
    return RANK_OK;
}

void xr_out_files_close(struct xr_out_files *od)
{
    if (!od)
        return;
    for (uint32_t i = 0; i < 2 * od->n; i++) {
        xr_stream_close(od->files[i].stream);
        if (od->files[i].fd >= 0)
            close(od->files[i].fd);
    }
    free(od->files);
    free(od->dir);
    free(od);
}

void xr_out_files_put(struct xr_out_files *od, uint32_t rank, int stream, const char *data,
                       size_t len, bool partial)
{
    struct file *f;

    if (rank >= od->n)
        return;
    f = &od->files[2 * rank + (uint32_t)stream - 1];
    if (f->stream)
        xr_stream_put(f->stream, rank, data, len, partial);
}
