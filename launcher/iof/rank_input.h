/*
 * rank_input.h: pass standard input to the ranks of this host that shall have it.
 */
#ifndef XR_LAUNCHER_IOF_RANK_INPUT_H
#define XR_LAUNCHER_IOF_RANK_INPUT_H

#include "launcher/iof/rank_output.h"
#include "launcher/job/job.h"

struct xr_inputs;

bool xr_inputs_wanted(const struct xr_job *job, uint32_t rank);
/* at: stays until the close. each: every rank of this host reads it; else one does. */
rank_status_t xr_inputs_open(const struct xr_local_io *at, bool each, struct xr_inputs **out);
/* A pipe for one more of them: *fd is the end for the rank. */
rank_status_t xr_inputs_add(struct xr_inputs *inputs, int *fd);
/* One that has a terminal; its master is taken over. */
rank_status_t xr_inputs_add_terminal(struct xr_inputs *inputs, int master);
void xr_inputs_close(struct xr_inputs *inputs);
void xr_inputs_put(struct xr_inputs *inputs, const void *data, size_t len);

#endif
