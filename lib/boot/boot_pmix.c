/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix.c: start and end the PMIx client behind boot.h.
 *
 * Needs only what every server provides: rank, job size, local peers, put, commit, fence, get, events, abort.
 * Without a server the process is a world of one, and PMIx is not initialized.
 */
#include "lib/base/compiler.h"
#include "lib/base/conf.h"
#include "lib/base/kept_fds.h"
#include "lib/base/log.h"
#include "lib/boot/boot_client.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rank_status_t rk_client_failed(const char *what, pmix_status_t rc)
{
    rk_error("%s failed: %s", what, PMIx_Error_string(rc));
    return RANK_ERR_BOOT;
}

static bool server_named(void)
{
    return rk_env("PMIX_NAMESPACE") || rk_env("PMIX_SERVER_URI2") || rk_env("PMIX_SERVER_URI21") ||
           rk_env("PMIX_SERVER_URI3") || rk_env("PMIX_SERVER_URI4") || rk_env("PMIX_SERVER_URI41");
}

/* Open a world of one; warn if the environment suggests that the user expected more. */
static rank_status_t open_alone(struct rk_boot *boot)
{
    static const char *const hints[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE",
                                        "OMPI_COMM_WORLD_SIZE"};

    for (size_t i = 0; i < RK_ARRAY_LEN(hints); i++) {
        const char *v = rk_env(hints[i]);
        if (v && atoi(v) > 1) {
            rk_warn("%s is %s, but there is no PMIx server: this process is a world of its own. "
                    "Start with xrun, srun --mpi=pmix, or Open MPI's mpirun",
                    hints[i], v);
            break;
        }
    }
    boot->alone = true;
    boot->size = boot->nlocal = 1;
    boot->local = calloc(1, sizeof(int));
    snprintf(boot->job, sizeof(boot->job), "alone-%d", (int)getpid());
    return boot->local ? RANK_OK : RANK_ERR_NO_MEMORY;
}

rank_status_t rk_boot_open(struct rk_boot **out)
{
    struct rk_client *c = calloc(1, sizeof(*c));
    pmix_status_t rc;
    rank_status_t st;
    int lowest;

    if (!c)
        return RANK_ERR_NO_MEMORY;
    pthread_mutex_init(&c->watch, NULL);
    if (gethostname(c->pub.host, sizeof(c->pub.host) - 1) < 0)
        snprintf(c->pub.host, sizeof(c->pub.host), "unknown");
    c->pub.host[strcspn(c->pub.host, ".")] = '\0';
    *out = &c->pub;
    c->spaces = rk_nspaces_new();
    if (!c->spaces) {
        c->pub.alone = true; /* nothing to finalize */
        return RANK_ERR_NO_MEMORY;
    }
    if (!server_named())
        return open_alone(&c->pub);
    lowest = rk_kept_fds_lowest();
    rc = PMIx_Init(&c->me, NULL, 0);
    rk_kept_fds_note_pmix(lowest);
    if (rc == PMIX_ERR_UNREACH)
        return open_alone(&c->pub);
    if (rc != PMIX_SUCCESS) {
        c->pub.alone = true; /* nothing to finalize */
        return rk_client_failed("PMIx_Init", rc);
    }
    c->pub.rank = (int)c->me.rank;
    snprintf(c->pub.job, sizeof(c->pub.job), "%s", c->me.nspace);
    st = rk_client_query_size(c);
    if (!st && c->pub.size > 1)
        st = rk_client_subscribe_deaths(c);
    if (!st)
        st = rk_client_query_local(c);
    return st ? st : rk_client_query_parent(c);
}

void rk_boot_leave(struct rk_boot *boot)
{
    struct rk_client *c = rk_client_of(boot);
    pmix_status_t rc;

    rk_client_unsubscribe();
    if (c->pub.alone || c->left)
        return;
    c->left = true;
    rk_debug("asked for %u card%s", c->pub.fetched, c->pub.fetched == 1 ? "" : "s");
    rc = PMIx_Finalize(NULL, 0);
    if (rc != PMIX_SUCCESS)
        rk_info("PMIx_Finalize: %s", PMIx_Error_string(rc));
    if (!PMIx_Initialized()) { /* else the program uses PMIx too, and its thread goes on */
        rk_answers_free(c);
        rk_client_census_over();
    }
}

void rk_boot_close(struct rk_boot *boot)
{
    struct rk_client *c = rk_client_of(boot);

    if (!c)
        return;
    rk_boot_leave(boot);
    pthread_mutex_destroy(&c->watch);
    rk_nspaces_free(c->spaces);
    free(c->pub.parent);
    free(c->pub.local);
    free(c->dead);
    free(c);
}

void rk_boot_abort(struct rk_boot *boot, int code, const char *text)
{
    if (!boot->alone && !rk_kept_fds_closed("rank_abort"))
        PMIx_Abort(code, text, NULL, 0);
}
