/*
 * mpi_env.h: what programs of MPI libraries other than ours find in their environment.
 */
#ifndef XR_LAUNCHER_COMPAT_MPI_ENV_H
#define XR_LAUNCHER_COMPAT_MPI_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct xr_foreign {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    bool oversubscribed; /* more ranks than cores on this host */
    bool spawned;        /* a rank of another job has asked for this one */
    bool pmi1;           /* XR_PMI1_FD is a connection */
};

/*
 * A rank's variables, as a NULL-terminated array of NAME=value; free with
 * xr_strings_free. Settings of libraries that the user's environment (env)
 * holds are left as they are. NULL: out of memory.
 */
char **xr_foreign_env(const struct xr_foreign *where, char *const *env);

#endif
