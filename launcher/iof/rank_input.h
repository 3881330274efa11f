/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rank_input.h: forward standard input to the ranks of this host that read it.
 */
#ifndef XR_LAUNCHER_IOF_RANK_INPUT_H
#define XR_LAUNCHER_IOF_RANK_INPUT_H

#include "launcher/iof/rank_output.h"
#include "launcher/job/job.h"

struct xr_rank_input;

bool xr_rank_input_wanted(const struct xr_job *job, uint32_t rank);
/* at must outlive the object. each: every rank of this host reads it; else one does. */
rank_status_t xr_rank_input_open(const struct xr_local_io *at, bool each, struct xr_rank_input **out);
/* Add a pipe for one more rank: *fd is the rank's end. */
rank_status_t xr_rank_input_add(struct xr_rank_input *inputs, int *fd);
/* Add a rank with a terminal. Takes ownership of master. */
rank_status_t xr_rank_input_add_terminal(struct xr_rank_input *inputs, int master);
void xr_rank_input_put(struct xr_rank_input *inputs, const void *data, size_t len);

#endif
