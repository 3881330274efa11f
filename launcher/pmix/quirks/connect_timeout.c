/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect_timeout.c: keep the time-out of a connect out of libpmix's hands.
 *
 * libpmix:  4.2.2 (pmix_server_connect).
 * Symptom:  two defects:
 *           - Each client of a host that connects with a time-out assigns the one timer of the operation anew, while it is
 *             in libevent's heap. With two clients libpmix's thread loops for ever when the time is over.
 *           - The timer runs on while the host completes the operation. An answer after it uses freed memory.
 * Upstream: openpmix/openpmix#2096, fixed for fences in March 2021; none known for connect.
 * Retire:   when pmix_server_connect of the oldest supported libpmix arms its timer once and stops it at the upcall.
 *
 * More than one local client with a time-out: the connect is refused, which makes libpmix delete the timer. One local
 * client: the first xrun's time-out is a little shorter than libpmix's, and a later answer is dropped.
 *
 * There is no upcall where all participants are on one host, or before all of a host have called. Two clients of one host
 * that connect with each other with a time-out still stop PMIx there.
 */
#include "launcher/pmix/pmix_internal.h"
#include "lib/base/clock.h"

#define SHORTER_MS 250 /* than libpmix's: the first xrun's time-out */
#define CLOSE_MS 50    /* to libpmix's: an answer would come too late */

bool xr_connect_timeout_refused(uint32_t timeout_s, uint32_t nlocal)
{
    return timeout_s && nlocal > 1;
}

uint64_t xr_connect_timeout_shorten(uint32_t *timeout_ms)
{
    uint64_t late_ns = 0;

    if (*timeout_ms) {
        late_ns = rk_clock_ns() + (*timeout_ms - CLOSE_MS) * 1000000ull;
        *timeout_ms -= SHORTER_MS;
    }
    return late_ns;
}

bool xr_connect_timeout_over(uint64_t late_ns)
{
    return late_ns && rk_clock_ns() >= late_ns;
}
