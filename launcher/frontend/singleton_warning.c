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

/* One line a job. A single rank that does not join others' job may have its reasons. */
void xr_front_warn_singleton(struct front *f, uint32_t app)
{
    const struct xr_app *of = &f->job->apps[app];
    char who[80];

    if (f->alone || f->ending || f->joins[app].joined || !f->joins[app].uses || (of->n < 2 && any_joined(f)))
        return;
    f->alone = true;
    if (of->n == 1)
        snprintf(who, sizeof(who), "rank %u has not joined the job although its", of->first);
    else if (f->job->napps == 1)
        snprintf(who, sizeof(who), "none of the %u ranks has joined the job although their", of->n);
    else
        snprintf(who, sizeof(who), "none of ranks %u to %u has joined the job although their", of->first, of->first + of->n - 1);
    xr_stream_say(f->err, "xrun: warning: %s program uses %s: %s is rank 0 of 1 to itself; use an MPI that speaks PMIx or "
                          "PMI-1, or its own launcher",
                  who, f->joins[app].uses, of->n == 1 ? "it" : "each");
}

/* If those who have not joined have ended, others may do so yet. */
bool xr_front_on_singleton(struct front *f, struct xr_unpacker *u)
{
    uint32_t node = xr_unpack_u32(u), app = xr_unpack_u32(u), over = xr_unpack_u32(u);
    const char *uses = xr_unpack_string(u);

    if (!xr_unpack_done(u) || !uses || node >= f->nnodes || app >= f->job->napps)
        return false;
    if (!f->joins[app].uses)
        f->joins[app].uses = strdup(uses);
    if (!over)
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
