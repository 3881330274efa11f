/*
 * user_tty.h: the user's terminal while a rank has one of its own (--pty).
 */
#ifndef XR_LAUNCHER_IOF_USER_TTY_H
#define XR_LAUNCHER_IOF_USER_TTY_H

#include "launcher/job/job.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

/* Does another process group than ours have the terminal? Who is in the background must not touch it. */
bool xr_terminal_is_others(int fd);

/*
 * The user's terminal. With keys, it passes every one on while the rank lives,
 * whose own terminal makes signals and echoes of them.
 */
struct xr_user_terminal;

/* on_resize: the window has another size now. NULL: no memory. */
struct xr_user_terminal *xr_user_terminal_open(struct event_base *base, bool keys,
                                               void (*on_resize)(void *arg,
                                                                 const struct xr_window *window),
                                               void *arg);
/* Also gives the terminal back. NULL is fine. */
void xr_user_terminal_close(struct xr_user_terminal *t);
/* Take it, as soon as xrun is in the foreground; and give it back: when xrun stops. */
void xr_user_terminal_take(struct xr_user_terminal *t);
void xr_user_terminal_give_back(struct xr_user_terminal *t);

/* The window of xrun's terminal, or a usual one. */
struct xr_window xr_user_window(void);

#endif
