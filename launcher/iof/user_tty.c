/* SPDX-License-Identifier: BSD-3-Clause */
/* user_tty.c: see user_tty.h. */
#include "launcher/iof/user_tty.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Period at which a background process checks whether it is still in the background. */
#define CHECK_MS 500

struct xr_user_tty {
    struct event *resized, *look;
    bool keys; /* keys are forwarded to the rank */
    bool taken;
    struct termios own;
    void (*on_resize)(void *arg, const struct xr_window *window);
    void *arg;
};

struct xr_window xr_user_tty_window(void)
{
    struct winsize size;

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
            return (struct xr_window){size.ws_row, size.ws_col};
    }
    return (struct xr_window){24, 80};
}

bool xr_user_tty_is_others(int fd)
{
    pid_t group = tcgetpgrp(fd);

    return group >= 0 && group != getpgrp(); /* -1: it is no controlling terminal */
}

static void on_tty_check(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    xr_user_tty_take(arg);
}

static void on_window(evutil_socket_t sig, short what, void *arg)
{
    struct xr_user_tty *t = arg;
    struct xr_window window = xr_user_tty_window();

    (void)sig;
    (void)what;
    t->on_resize(t->arg, &window);
}

struct xr_user_tty *xr_user_tty_open(struct event_base *base, bool keys,
                                               void (*on_resize)(void *arg,
                                                                 const struct xr_window *window),
                                               void *arg)
{
    struct xr_user_tty *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->on_resize = on_resize;
    t->arg = arg;
    t->keys = keys && isatty(STDIN_FILENO);
    t->resized = evsignal_new(base, SIGWINCH, on_window, t);
    t->look = evtimer_new(base, on_tty_check, t);
    if (!t->resized || !t->look || event_add(t->resized, NULL)) {
        xr_user_tty_close(t);
        return NULL;
    }
    xr_user_tty_take(t);
    return t;
}

void xr_user_tty_take(struct xr_user_tty *t)
{
    const struct timeval soon = {0, CHECK_MS * 1000};
    struct termios raw;

    if (!t || !t->keys || t->taken)
        return;
    /* Changing a terminal from the background would stop xrun. */
    if (xr_user_tty_is_others(STDIN_FILENO)) {
        event_add(t->look, &soon);
        return;
    }
    if (tcgetattr(STDIN_FILENO, &t->own))
        return;
    raw = t->own;
    cfmakeraw(&raw);
    raw.c_oflag = t->own.c_oflag; /* lines of other ranks have no carriage returns */
    t->taken = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

void xr_user_tty_give_back(struct xr_user_tty *t)
{
    if (!t)
        return;
    event_del(t->look);
    if (!t->taken)
        return;
    t->taken = false;
    if (!xr_user_tty_is_others(STDIN_FILENO))
        tcsetattr(STDIN_FILENO, TCSADRAIN, &t->own);
}

void xr_user_tty_close(struct xr_user_tty *t)
{
    if (!t)
        return;
    if (t->look)
        xr_user_tty_give_back(t);
    if (t->resized)
        event_free(t->resized);
    if (t->look)
        event_free(t->look);
    free(t);
}
