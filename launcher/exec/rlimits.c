/* SPDX-License-Identifier: BSD-3-Clause */
/* rlimits.c: see rlimits.h. */
#include "launcher/exec/rlimits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

/*
 * Descriptors of an agent for each rank: two pipes, perhaps with their other ends at start, a pidfd, connections
 * of PMIx and PMI-1, and a share of those of the starting threads.
 */
#define FDS_PER_RANK 8
/* libpmix's server has stack frames of more than half of it. */
#define LEAST_STACK (256 << 10)

uint64_t xr_rlimits_files(void)
{
    struct rlimit lim;

    return getrlimit(RLIMIT_NOFILE, &lim) ? 0 : lim.rlim_cur;
}

bool xr_rlimits_raise_files(uint64_t need, const char *subject, char *err, size_t errlen)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= need)
        return true;
    if (lim.rlim_max < need) {
        snprintf(err, errlen,
                 "%s %llu open files in one process, and the hard limit is %llu; start "
                 "fewer or raise it (ulimit -Hn)",
                 subject, (unsigned long long)need, (unsigned long long)lim.rlim_max);
        return false;
    }
    lim.rlim_cur = lim.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &lim) == 0)
        return true;
    snprintf(err, errlen, "%s %llu open files in one process, and the limit cannot be raised: %s", subject,
             (unsigned long long)need, strerror(errno));
    return false;
}

/* Lockable memory is only ever raised: a low limit is mostly the default of a login host, and networks need it. */
static const struct {
    int resource;
    bool raise_only;
} ulimits[XR_ULIMITS] = {
    {RLIMIT_STACK, false}, {RLIMIT_CORE, false}, {RLIMIT_CPU, false},     {RLIMIT_FSIZE, false},
    {RLIMIT_DATA, false},  {RLIMIT_AS, false},   {RLIMIT_MEMLOCK, true},
};

void xr_rlimits_read(struct xr_rlimits *out)
{
    struct rlimit lim;

    out->umask = umask(0);
    umask(out->umask);
    for (int i = 0; i < XR_ULIMITS; i++)
        out->soft[i] = getrlimit((unsigned)ulimits[i].resource, &lim) ? RLIM_INFINITY : lim.rlim_cur;
}

void xr_rlimits_set(const struct xr_rlimits *limits)
{
    struct rlimit lim;

    umask(limits->umask & 0777);
    for (int i = 0; i < XR_ULIMITS; i++) {
        rlim_t soft = limits->soft[i];
        if (getrlimit((unsigned)ulimits[i].resource, &lim))
            continue;
        if (soft > lim.rlim_max)
            soft = lim.rlim_max;
        if (soft == lim.rlim_cur || (soft < lim.rlim_cur && ulimits[i].raise_only))
            continue;
        lim.rlim_cur = soft;
        setrlimit((unsigned)ulimits[i].resource, &lim);
    }
}

static bool check_files(int n, int more, uint32_t below, char *err, size_t errlen)
{
    char subject[64];

    snprintf(subject, sizeof(subject), "%d rank%s", n, n == 1 ? " needs" : "s need");
    return xr_rlimits_raise_files((uint64_t)n * (uint64_t)(FDS_PER_RANK + more) + below * XR_FDS_PER_AGENT + XR_FDS_OWN,
                                 subject, err, errlen);
}

static bool check_stack(char *err, size_t errlen)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_STACK, &lim) || lim.rlim_cur >= LEAST_STACK)
        return true;
    snprintf(err, errlen, "a stack of %llu KiB is too small to start ranks, %d KiB are needed; raise the limit (ulimit -s)",
             (unsigned long long)lim.rlim_cur >> 10, LEAST_STACK >> 10);
    return false;
}

bool xr_rlimits_check(int n, int more, uint32_t below, char *err, size_t errlen)
{
    return check_stack(err, errlen) && check_files(n, more, below, err, errlen);
}
