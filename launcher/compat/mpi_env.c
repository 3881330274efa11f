/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_env.c: set one environment for every MPI library. See mpi_env.h.
 *
 * A program's library is known only when it connects. So each rank gets the
 * variables of all of them, and each library ignores the others'. Open MPI 5 needs
 * only PMIx's own variables.
 */
#include "launcher/compat/mpi_env.h"
#include "launcher/exec/environ.h"
#include "launcher/job/job.h"
#include "launcher/util/strv.h"
#include "lib/base/compiler.h"

#include <stdio.h>
#include <stdlib.h>

char **xr_mpi_env_make(const struct xr_mpi_env *w, char *const *env)
{
    const struct {
        const char *name, *text; /* text, or the number */
        uint32_t number;
        bool wanted;
        bool yields; /* the user's setting takes precedence */
    } vars[] = {
        /* MPICH and its derivatives. */
        {"PMI_FD", NULL, XR_PMI1_FD, w->pmi1, false},
        {"PMI_RANK", NULL, w->rank, w->pmi1, false},
        {"PMI_SIZE", NULL, w->size, w->pmi1, false},
        {"PMI_SPAWNED", NULL, 1, w->pmi1 && w->spawned, false},
        {"MPI_LOCALRANKID", NULL, w->local_rank, w->pmi1, false},
        {"MPI_LOCALNRANKS", NULL, w->local_size, w->pmi1, false},
        /* MPICH 5 finds PMIx's variables too, and would choose the wrong ones. */
        {"MPIR_CVAR_PMI_VERSION", "1", 0, w->pmi1, true},
        /*
         * Open MPI 4 runs as a singleton without this or its own mpirun's. It must have the form of an address;
         * nothing connects to it.
         */
        {"OMPI_MCA_orte_local_daemon_uri", "0.0;tcp://127.0.0.1:1", 0, true, true},
        /* Open MPI 4 does not query PMIx whether ranks outnumber cores; Open MPI 5 does. */
        {"OMPI_MCA_mpi_yield_when_idle", "1", 0, w->oversubscribed, true},
    };
    char **out = calloc(RK_ARRAY_LEN(vars) + 1, sizeof(*out));
    size_t n = 0;

    for (size_t i = 0; out && i < RK_ARRAY_LEN(vars); i++) {
        int len;
        if (!vars[i].wanted || (vars[i].yields && xr_environ_value(env, vars[i].name)))
            continue;
        if (vars[i].text)
            len = asprintf(&out[n], "%s=%s", vars[i].name, vars[i].text);
        else
            len = asprintf(&out[n], "%s=%u", vars[i].name, vars[i].number);
        if (len < 0) {
            out[n] = NULL;
            xr_strv_free(out);
            return NULL;
        }
        n++;
    }
    return out;
}
