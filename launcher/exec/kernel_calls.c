/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_calls.c: see kernel_calls.h. */
#include "launcher/exec/kernel_calls.h"
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEEDED(name) {#name, SYS_##name}

/* Of xrun, its agents, libevent and libpmix. Each one rejects arguments of -1, and changes nothing. */
static const struct needed_call {
    const char *name;
    long number;
} needed[] = {
    NEEDED(accept),        NEEDED(accept4),       NEEDED(bind),          NEEDED(connect),       NEEDED(dup3),          NEEDED(epoll_create1),
    NEEDED(epoll_ctl),     NEEDED(eventfd2),      NEEDED(fcntl),         NEEDED(ioctl),         NEEDED(listen),        NEEDED(getsockname),
    NEEDED(getsockopt),    NEEDED(pipe2),         NEEDED(pselect6),      NEEDED(recvfrom),      NEEDED(sendto),        NEEDED(setsockopt),
    NEEDED(shutdown),      NEEDED(signalfd4),     NEEDED(socket),        NEEDED(socketpair),    NEEDED(wait4),         NEEDED(waitid),
    NEEDED(writev),
#ifdef SYS_epoll_wait
    NEEDED(epoll_wait),
#else
    NEEDED(epoll_pwait),
#endif
};

bool xr_kernel_is_valgrind(void)
{
    const char *preload = rk_env("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload_core");
}

/* Returns the errno with which the call is refused, or 0. */
static int kernel_refusal(long number)
{
    if (syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) != -1)
        return 0;
    return errno == EPERM || errno == ENOSYS ? errno : 0;
}

static void *empty_thread(void *arg)
{
    return arg;
}

/* The C library does without clone3 after ENOSYS only. An old one does not make that call. */
static bool starts_threads(void)
{
#ifdef SYS_clone3
    pthread_t id;

    if (syscall(SYS_clone3, NULL, 0L) == -1 && errno == EPERM)
        return pthread_create(&id, NULL, empty_thread, NULL) == 0 && pthread_join(id, NULL) == 0;
#endif
    return true;
}

bool xr_kernel_calls_check(char *err, size_t errlen)
{
    int refusal;

    if (xr_kernel_is_valgrind())
        return true;
    for (size_t i = 0; i < RK_ARRAY_LEN(needed); i++) {
        refusal = kernel_refusal(needed[i].number);
        if (!refusal)
            continue;
        snprintf(err, errlen, "xrun needs the system call %s, which is refused here: %s%s", needed[i].name,
                 strerror(refusal), rk_refusal_remedy(refusal));
        return false;
    }
    if (starts_threads())
        return true;
    snprintf(err, errlen, "no thread can be started, as the system call clone3 is refused here: %s; a seccomp profile has to "
             "allow it, or to refuse it with ENOSYS (as newer container engines do)", strerror(EPERM));
    return false;
}
