/*
 * place_job.h: from a plan to what agents are told.
 */
#ifndef RK_LAUNCHER_FRONTEND_PLACE_JOB_H
#define RK_LAUNCHER_FRONTEND_PLACE_JOB_H

#include "launcher/job/job.h"
#include "launcher/cli/options.h"
#include "launcher/map/plan.h"
#include "launcher/bootstrap/setup.h"

#define RK_FANOUT 32

/* Place the ranks, and show it where that was asked for. On failure err says why. */
rank_status_t rk_assign_place(const struct rk_options *options, struct rk_plan *plan, char *err,
                              size_t errlen);

/* Ranks are placed: tell the job how many, and check what could not be checked before. */
rank_status_t rk_assign_size(const struct rk_options *options, const struct rk_plan *plan, struct rk_job *job,
                             char *err, size_t errlen);

/* Let xrun open as many files as it may need for the agents, and for what n ranks write into files. False: err says
 * that it cannot. */
bool rk_assign_files(const struct rk_options *options, const struct rk_plan *plan, uint32_t n, char *err,
                     size_t errlen);

/* The command that starts agents on other hosts, with a path that holds wherever it is run. To be freed. NULL: err says that
 * it is not there. */
char *rk_assign_command(const struct rk_options *options, const struct rk_plan *plan, char *err, size_t errlen);

/* What agents of other hosts are told at first; this host's agent, too. Clear it in any case. */
rank_status_t rk_assign_setup(const struct rk_options *options, const struct rk_plan *plan,
                              struct rk_setup *out);

/* Put the placement into the job. */
rank_status_t rk_assign_map(const struct rk_plan *plan, uint32_t fanout, struct rk_job *job);
/* The seats of a host's ranks, packed. */
rank_status_t rk_assign_seats(const struct rk_plan *plan, uint32_t host,
                              const struct rk_by_host *ranks, struct rk_packer *p);

#endif
