/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor_page.c: share a page with the agent. See supervisor_page.h. */
#include "launcher/agent/supervisor_page.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

/* An agent of another host receives its job only after it has connected. */
static struct shared {
    char job[256];
    atomic_bool busy;
} *shared;

void xr_supervisor_page_open(bool busy)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        shared = NULL;
    xr_supervisor_page_set_busy(busy);
}

bool xr_supervisor_page_busy(void)
{
    return shared && atomic_load(&shared->busy);
}

const char *xr_supervisor_page_job(void)
{
    return shared && *shared->job ? shared->job : NULL;
}

void xr_supervisor_page_set_busy(bool busy)
{
    if (shared)
        atomic_store(&shared->busy, busy);
}

void xr_supervisor_page_set_job(const char *job)
{
    if (shared && strlen(job) < sizeof(shared->job))
        memcpy(shared->job, job, strlen(job) + 1);
}
