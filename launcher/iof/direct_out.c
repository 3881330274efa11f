/* SPDX-License-Identifier: BSD-3-Clause */
/* direct_out.c: see direct_out.h. */
#include "launcher/iof/direct_out.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct xr_direct *xr_direct_open(void)
{
    struct xr_direct *direct =
        mmap(NULL, sizeof(*direct), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (direct == MAP_FAILED)
        return NULL;
    direct->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (direct->fd >= 0)
        return direct;
    xr_direct_close(direct);
    return NULL;
}

void xr_direct_leave_fd(struct xr_direct *direct)
{
    /* The descriptor is not marked as closed: the agent uses the same number. */
    if (direct)
        close(direct->fd);
}

void xr_direct_close(struct xr_direct *direct)
{
    if (direct)
        munmap(direct, sizeof(*direct));
}
