/* SPDX-License-Identifier: BSD-3-Clause */
/* job_info.h: pack the part of a job that other jobs get: name, sizes, hosts, map. */
#ifndef XR_LAUNCHER_DPM_JOB_INFO_H
#define XR_LAUNCHER_DPM_JOB_INFO_H

#include "launcher/job/job.h"

void xr_job_info_pack(const struct xr_job *job, struct xr_packer *p);
/* Unpack a job with its id, size, hosts, map and the sizes of its programs, and nothing else. Returns false if it is
 * malformed. Caller clears the job (xr_job_clear) in any case. */
bool xr_job_info_unpack(struct xr_unpacker *u, struct xr_job *out);

#endif
