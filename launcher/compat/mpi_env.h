/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_env.h: set the variables that other MPI libraries need in a rank.
 *
 * Room: support for programs of other MPI libraries.
 * Called by: agent, frontend.
 * Never: includes a header of an MPI library; is needed by librank's own programs.
 * Tests: tests/launcher/unit/{elf,pmi1}_test.c, tests/foreign.
 */
#ifndef XR_LAUNCHER_COMPAT_MPI_ENV_H
#define XR_LAUNCHER_COMPAT_MPI_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct xr_mpi_env {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    bool oversubscribed; /* more ranks than cores on this host */
    bool spawned;        /* spawned by a rank of another job */
    bool pmi1;           /* XR_PMI1_FD is a connection */
};

/*
 * Return a rank's variables, as a NULL-terminated array of NAME=value. Caller frees with xr_strv_free.
 * Settings of libraries in the user's environment (env) are not replaced. NULL: out of memory.
 */
char **xr_mpi_env_make(const struct xr_mpi_env *where, char *const *env);

#endif
