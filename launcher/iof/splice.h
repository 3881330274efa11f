/*
 * splice.h: where do the lines in a pipe end, without reading them?
 *
 * Much output goes from a rank's pipe to the user's as pages that change hands (splice(2)), which is two copies
 * less than reading and writing. Only whole lines may go, so the last newline has to be found first: the pages are
 * lent to a pipe of our own (tee(2)), all but the last are thrown away there, and only that one is read.
 */
#ifndef XR_LAUNCHER_IOF_SPLICE_H
#define XR_LAUNCHER_IOF_SPLICE_H

#include <stdbool.h>
#include <stddef.h>

struct xr_splicer;

/* For pipes of that many bytes. NULL: this machine has no more descriptors, or no /dev/null. */
struct xr_splicer *xr_splicer_open(size_t bytes);
/* NULL is fine. */
void xr_splicer_close(struct xr_splicer *splicer);

/* How many bytes of whole lines are in the pipe now; 0 if there are fewer than least bytes, if the last page holds no
 * newline, or if it cannot be told. Nothing is taken out. */
size_t xr_splicer_lines(struct xr_splicer *splicer, int fd, size_t least);

#endif
