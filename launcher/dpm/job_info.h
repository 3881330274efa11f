/*
 * job_info.h: what other jobs are told of a job: its name, and which rank runs
 * where.
 */
#ifndef RK_LAUNCHER_DPM_JOB_INFO_H
#define RK_LAUNCHER_DPM_JOB_INFO_H

#include "launcher/job/job.h"

void rk_outline_pack(const struct rk_job *job, struct rk_packer *p);
/* A job with its id, size, hosts, map and the sizes of its programs, and nothing else. False: what came makes no
 * sense. Clear it (rk_job_clear) in any case. */
bool rk_outline_unpack(struct rk_unpacker *u, struct rk_job *out);

#endif
