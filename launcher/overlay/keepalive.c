/* SPDX-License-Identifier: BSD-3-Clause */
/* keepalive.c: see keepalive.h. */
#include "launcher/overlay/keepalive.h"
#include "launcher/job/timeouts.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define UNANSWERED_PROBES 3

static void set_user_timeout(int fd, int ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

/*
 * The socket of a stopped process accepts data until its buffer is full. TCP_USER_TIMEOUT then expires although
 * the host answers each probe, so it is removed for that time.
 */
bool xr_keepalive_suspend(int fd, bool suspended)
{
    int queued = 0, unsent = 0;
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    bool suspend;

    if (ioctl(fd, SIOCOUTQ, &queued) < 0 || ioctl(fd, SIOCOUTQNSD, &unsent) < 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return suspended;
    suspend = unsent > 0 && unsent == queued && info.tcpi_probes < UNANSWERED_PROBES;
    if (suspend != suspended)
        set_user_timeout(fd, suspend ? 0 : XR_LOST_AFTER_S * 1000);
    return suspend;
}

void xr_keepalive_enable(int fd)
{
    const int on = 1, idle = XR_KEEPALIVE_IDLE_S, every = XR_KEEPALIVE_INTERVAL_S, times = XR_KEEPALIVE_PROBES;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
    set_user_timeout(fd, XR_LOST_AFTER_S * 1000);
}
