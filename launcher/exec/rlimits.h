/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rlimits.h: check, raise and pass on resource limits.
 */
#ifndef XR_LAUNCHER_EXEC_RLIMITS_H
#define XR_LAUNCHER_EXEC_RLIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open files of an agent or front end, without those of its children. */
#define XR_FDS_OWN 44
/* Open files for each child agent: its connection, its launcher command, and pipes to that while it starts. */
#define XR_FDS_PER_AGENT 6u

/* Return the soft limit of open files, 0: not known. Until it is raised it is the user's, which ranks inherit. */
uint64_t xr_rlimits_files(void);
/*
 * Raise the limit so that this process can open this many files. Returns false with a text "SUBJECT N open files
 * ..." in err. subject ends with a verb.
 */
bool xr_rlimits_raise_files(uint64_t need, const char *subject, char *err, size_t errlen);

/*
 * Limits of the user's shell, which ranks of other hosts get instead of those of ssh's daemon. Open files are
 * separate, see above; processes are not included, because they count for a user on a host.
 */
#define XR_ULIMITS 7
struct xr_rlimits {
    uint32_t umask;
    uint64_t soft[XR_ULIMITS]; /* in our own order: the kernel's numbers differ between architectures */
};

/* Read the limits of this process. Call while it has one thread. */
void xr_rlimits_read(struct xr_rlimits *out);
/* Set the limits of this process, as far as its hard limits allow. Makes only system calls. */
void xr_rlimits_set(const struct xr_rlimits *limits);

/*
 * Raise the soft limit of open files to what an agent of n ranks with below child agents needs (more: extra
 * files of each rank), and check the stack limit. Returns false with the limit that is too low in err.
 */
bool xr_rlimits_check(int n, int more, uint32_t below, char *err, size_t errlen);

#endif
