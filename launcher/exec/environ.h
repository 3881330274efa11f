/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * environ.h: build the environment of ranks.
 */
#ifndef XR_LAUNCHER_EXEC_ENVIRON_H
#define XR_LAUNCHER_EXEC_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Remove from xrun's environment the variables that another launcher set for this process (PMIX_RANK, PMI_FD,
 * OMPI_COMM_WORLD_RANK, ...): a rank that found them would join the wrong job. The user's settings stay
 * (PMIX_MCA_*, OMPI_MCA_*). In a rank of an xrun with --env torch, removes PyTorch's variables too.
 */
void xr_environ_scrub(void);

/* Return whether a variable of this name belongs to another launcher. */
bool xr_environ_foreign(const char *name);

/* Return whether s (NAME or NAME=value) is set by xrun for each rank: XRUN_RANK ... */
bool xr_environ_own(const char *s);

/* Return whether s (NAME or NAME=value) begins with a name of letters, digits and _. */
bool xr_environ_named(const char *s);

/*
 * Put a copy of NAME=value into a NULL-terminated array, replacing that name; *env may be NULL at first. Caller
 * frees with xr_strv_free. Returns false if out of memory.
 */
bool xr_environ_put(char ***env, const char *assignment);

/* Put the lines NAME=value of a file. Returns false with a text in err. */
bool xr_environ_put_file(char ***env, const char *path, char *err, size_t errlen);

/* Return an array of base's strings, replaced and extended by extra's; borrows the strings. NULL: out of memory. */
char **xr_environ_merge(char *const *base, char *const *extra);

/* Return the value of a variable, or NULL. */
const char *xr_environ_value(char *const *env, const char *name);

/* Return the value of a variable in own, otherwise in common, or NULL. */
const char *xr_environ_value_of(char *const *own, char *const *common, const char *name);

#endif
