/* SPDX-License-Identifier: BSD-3-Clause */
/* singleton_warning.c: warn about programs whose ranks do not join the job. */
#include "launcher/frontend/frontend_internal.h"

#include <stdio.h>
#include <string.h>

static bool any_joined(const struct front *f)
{
    for (uint32_t i = 0; i < f->job->napps; i++) {
        if (f->joins[i].joined)
            return true;
    }
    return false;
}

/* A single rank that does not join the job of others may do so on purpose: no warning. */
void xr_front_warn_singleton(struct front *f, uint32_t app)
{
    const struct xr_app *of = &f->job->apps[app];
    char which[80];

    if (f->singleton_warned || xr_job_is_ending(f->state) || f->joins[app].joined || !f->joins[app].uses ||
        (of->n < 2 && any_joined(f)))
        return;
    f->singleton_warned = true;
    if (of->n == 1)
        snprintf(which, sizeof(which), "rank %u has not joined the job although its", of->first);
    else if (f->job->napps == 1)
        snprintf(which, sizeof(which), "none of the %u ranks has joined the job although their", of->n);
    else
        snprintf(which, sizeof(which), "none of ranks %u to %u has joined the job although their", of->first, of->first + of->n - 1);
    xr_stream_print(f->err, "xrun: warning: %s program uses %s: %s is rank 0 of 1 to itself; use an MPI that speaks PMIx or "
                          "PMI-1, or its own launcher",
                  which, f->joins[app].uses, of->n == 1 ? "it" : "each");
}

/* The ranks of one host have not joined. If they have ended, those of other hosts may still join. */
bool xr_front_on_singleton(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), app = xr_unpack_u32(u), ended = xr_unpack_u32(u);
    const char *uses = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !uses || node >= f->nnodes || app >= f->job->napps)
        return false;
    if (!f->joins[app].uses)
        f->joins[app].uses = strdup(uses);
    if (!ended)
        xr_front_warn_singleton(f, app);
    return true;
}

bool xr_front_on_joined(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), app = xr_unpack_u32(u);

    if (!xr_unpack_done(u) || node >= f->nnodes || app >= f->job->napps)
        return false;
    f->joins[app].joined = true;
    return true;
}
