/*
 * environ.h: the environment that ranks get.
 */
#ifndef RK_LAUNCHER_ENVIRON_H
#define RK_LAUNCHER_ENVIRON_H

#include <stdbool.h>

/*
 * Take out of xrun's own environment what another launcher left there for the
 * process that xrun is (PMIX_RANK, PMI_FD, OMPI_COMM_WORLD_RANK, ...): a rank
 * that saw it would join the wrong job. Settings of the user's stay
 * (PMIX_MCA_*, OMPI_MCA_*).
 */
void rk_environ_scrub(void);

/* Does a variable of this name belong to another launcher? */
bool rk_environ_foreign(const char *name);

/* One -x argument, NAME or NAME=value. False: NAME alone, and it is not set. */
bool rk_environ_export(const char *arg);

#endif
