/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pty.c: open a terminal for one rank (--pty). See pty.h.
 */
#include "launcher/iof/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int xr_pty_open(const struct xr_window *window, int *master, int *slave)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), error;
    char name[64];

    if (fd < 0)
        return -1;
    if (grantpt(fd) || unlockpt(fd) || ptsname_r(fd, name, sizeof(name)))
        goto failed;
    *slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*slave < 0)
        goto failed;
    xr_pty_resize(fd, window);
    *master = fd;
    return 0;

failed:
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

void xr_pty_resize(int master, const struct xr_window *window)
{
    struct winsize size = {.ws_row = window->rows, .ws_col = window->cols};

    if (master >= 0)
        ioctl(master, TIOCSWINSZ, &size); /* sends SIGWINCH to the programs there */
}
