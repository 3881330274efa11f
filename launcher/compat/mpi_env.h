/*
 * mpi_env.h: what programs of MPI libraries other than ours find in their environment.
 */
#ifndef RK_LAUNCHER_COMPAT_MPI_ENV_H
#define RK_LAUNCHER_COMPAT_MPI_ENV_H

#include <stdbool.h>
#include <stdint.h>

struct rk_foreign {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    bool oversubscribed; /* more ranks than cores on this host */
    bool spawned;        /* a rank of another job has asked for this one */
    bool pmi1;           /* RK_PMI1_FD is a connection */
};

/*
 * A rank's variables, as a NULL-terminated array of NAME=value; free with
 * rk_strings_free. Settings of libraries that the user's environment (env)
 * holds are left as they are. NULL: out of memory.
 */
char **rk_foreign_env(const struct rk_foreign *where, char *const *env);

#endif
