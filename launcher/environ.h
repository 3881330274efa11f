/*
 * environ.h: the environment that ranks get.
 */
#ifndef RK_LAUNCHER_ENVIRON_H
#define RK_LAUNCHER_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Take out of xrun's own environment what another launcher left there for the
 * process that xrun is (PMIX_RANK, PMI_FD, OMPI_COMM_WORLD_RANK, ...): a rank
 * that saw it would join the wrong job. Settings of the user's stay
 * (PMIX_MCA_*, OMPI_MCA_*).
 */
void rk_environ_scrub(void);

/* Does a variable of this name belong to another launcher? */
bool rk_environ_foreign(const char *name);

/*
 * What n arguments of -x (NAME or NAME=value) add to the environment, as a NULL-terminated array of
 * copies; free with rk_strings_free. Of a name that comes twice the last counts. NULL: *missing is
 * the argument whose NAME stands alone and is not set, or NULL without memory.
 */
char **rk_environ_additions(const char *const *set, int n, const char **missing);

/* base with the variables of extra instead of, or besides, its own: an array that points at their
 * strings; NULL without memory. */
char **rk_environ_merge(char *const *base, char *const *extra);

/* The value of a variable, or NULL. */
const char *rk_environ_value(char *const *env, const char *name);

#endif
