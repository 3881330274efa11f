/*
 * environ.h: the environment that ranks get.
 */
#ifndef XR_LAUNCHER_EXEC_ENVIRON_H
#define XR_LAUNCHER_EXEC_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Take out of xrun's own environment what another launcher left there for the
 * process that xrun is (PMIX_RANK, PMI_FD, OMPI_COMM_WORLD_RANK, ...): a rank
 * that saw it would join the wrong job. Settings of the user's stay
 * (PMIX_MCA_*, OMPI_MCA_*). Inside a rank of an xrun with --env torch that
 * goes for PyTorch's variables too.
 */
void xr_environ_scrub(void);

/* Does a variable of this name belong to another launcher? */
bool xr_environ_foreign(const char *name);

/* Is s (NAME or NAME=value) one of those that each rank gets from xrun: XRUN_RANK ...? */
bool xr_environ_own(const char *s);

/* Does s (NAME or NAME=value) begin with a name of letters, digits and _? */
bool xr_environ_named(const char *s);

/* Put a copy of NAME=value into a NULL-terminated array, in place of what has that name; *env may be
 * NULL at first. Free it with xr_strings_free. False: no memory. */
bool xr_environ_put(char ***env, const char *assignment);

/* env_file.c: put what a file says in its lines NAME=value. False: err holds why. */
bool xr_environ_put_file(char ***env, const char *path, char *err, size_t errlen);

/* base with the variables of extra instead of, or besides, its own: an array that points at their
 * strings; NULL without memory. */
char **xr_environ_merge(char *const *base, char *const *extra);

/* The value of a variable, or NULL. */
const char *xr_environ_value(char *const *env, const char *name);

#endif
