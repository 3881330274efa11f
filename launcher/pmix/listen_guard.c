/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen_guard.c: the library's own door, made fit for strangers.
 *
 * libpmix accepts connections of its clients at a port, and its one thread then
 * waits for the first words of each, however long that takes: anybody on the
 * host who connects and is silent would stop PMIx for all ranks. The kernel can
 * hold such connections back until something is said, and it lets what is
 * accepted inherit a limit for reading. A client says its first words by one send,
 * so that they are all there when it is accepted, however slow it is.
 *
 * The limit is for each time that the library reads: who says half a word holds it for two of them, and who says a long one
 * in pieces for as long as he likes. Other users of the host do not come so far (owner.c).
 */
#include "launcher/pmix/pmix_internal.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SILENT_S 60 /* a client speaks at once, but may have to wait for a core */
#define HALF_US 100000

static bool listens(int fd)
{
    int on = 0, domain = AF_UNSPEC;
    socklen_t len = sizeof(on);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) || !on)
        return false;
    len = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
           (domain == AF_INET || domain == AF_INET6);
}

static size_t each(int *fds, size_t max)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    size_t n = 0;

    while (dir && n < max && (e = readdir(dir))) {
        int fd = atoi(e->d_name);
        if (e->d_name[0] != '.' && fd != dirfd(dir) && listens(fd))
            fds[n++] = fd;
    }
    if (dir)
        closedir(dir);
    return n;
}

void xr_listeners_note(struct xr_listeners *l)
{
    l->n = each(l->fd, XR_LISTENERS);
}

void xr_listeners_guard(const struct xr_listeners *before)
{
    const struct timeval half = {0, HALF_US};
    const int silent = SILENT_S;
    int fds[2 * XR_LISTENERS];
    size_t n = each(fds, 2 * XR_LISTENERS), new = 0;

    for (size_t i = 0; i < n; i++) {
        bool old = false;
        for (size_t k = 0; k < before->n; k++)
            old = old || before->fd[k] == fds[i];
        if (old)
            continue;
        setsockopt(fds[i], IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent, sizeof(silent));
        setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &half, sizeof(half));
        fds[new++] = fds[i];
    }
    xr_owner_guard(fds, new);
}
