/* direct_out.c: see direct.h. */
#include "launcher/iof/direct_out.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct rk_direct *rk_direct_open(void)
{
    struct rk_direct *direct =
        mmap(NULL, sizeof(*direct), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (direct == MAP_FAILED)
        return NULL;
    direct->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (direct->fd >= 0)
        return direct;
    rk_direct_close(direct);
    return NULL;
}

void rk_direct_leave_fd(struct rk_direct *direct)
{
    /* Not marked as closed: the number is the agent's, too. */
    if (direct)
        close(direct->fd);
}

void rk_direct_close(struct rk_direct *direct)
{
    if (direct)
        munmap(direct, sizeof(*direct));
}
