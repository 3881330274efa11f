/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * user_tty.h: control the user's terminal while a rank has its own (--pty).
 */
#ifndef XR_LAUNCHER_IOF_USER_TTY_H
#define XR_LAUNCHER_IOF_USER_TTY_H

#include "launcher/job/job.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* Return whether another process group owns the terminal. A background process must not touch it. */
bool xr_user_tty_is_others(int fd);

/*
 * The user's terminal. With keys, all keys are forwarded while the rank lives; its own terminal makes signals
 * and echoes of them.
 */
struct xr_user_tty;

/* on_resize: the window size changed. NULL: out of memory. */
struct xr_user_tty *xr_user_tty_open(struct event_base *base, bool keys,
                                               void (*on_resize)(void *arg,
                                                                 const struct xr_window *window),
                                               void *arg);
/* Restores the terminal. No-op if NULL. */
void xr_user_tty_close(struct xr_user_tty *t);
/* Take the terminal as soon as xrun is in the foreground; give it back when xrun stops. */
void xr_user_tty_take(struct xr_user_tty *t);
void xr_user_tty_give_back(struct xr_user_tty *t);

/* Return the window size of xrun's terminal, or a default. */
struct xr_window xr_user_tty_window(void);

#endif
