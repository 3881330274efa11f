/*
 * rlimits.h: check, raise and pass on limits of resources.
 */
#ifndef XR_LAUNCHER_EXEC_RLIMITS_H
#define XR_LAUNCHER_EXEC_RLIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Open files of a process that starts others, without those. */
#define XR_FDS_OWN 64
/* For each agent just below: its wire, the command that started it, and pipes to that one while it starts. */
#define XR_FDS_PER_AGENT 6u

/* The soft limit of open files, 0: not known. As long as nobody has raised it, the user's, which ranks shall have. */
uint64_t xr_limits_files(void);
/* Let this process open so many files. False: err holds why not, beginning with "WHOSE N open files"; whose ends with a
 * verb. */
bool xr_limits_raise_files(uint64_t need, const char *whose, char *err, size_t errlen);

/*
 * What the shell that xrun was started from has set for its commands: ranks of other hosts have it, too, and not what
 * ssh's daemon has there. Open files are not among them, see above; nor processes, which are the user's on a host.
 */
#define XR_ULIMITS 7
struct xr_ulimits {
    uint32_t umask;
    uint64_t soft[XR_ULIMITS]; /* in an order of our own: the kernel's numbers are not alike everywhere */
};

/* Of this process, while it has one thread. */
void xr_ulimits_read(struct xr_ulimits *out);
/* For this process, as far as its hard limits let it. Calls nothing but the kernel. */
void xr_ulimits_set(const struct xr_ulimits *limits);

/*
 * Raise the soft limit of open files to what an agent of n ranks needs (with more than the usual for each) that has below
 * agents under it, and check the limit of the stack. Returns false with the limit that is too low in err.
 */
bool xr_limits_check(int n, int more, uint32_t below, char *err, size_t errlen);

#endif
