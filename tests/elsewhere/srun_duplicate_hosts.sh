#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# srun_duplicate_hosts.sh: run our programs under Slurm on hosts that look alike.
# They have the ipc namespace and the boot id in common, by which UCX distinguishes hosts, but no memory.
LAUNCHER=srun_hosts
export HOSTS_TWINS=1
. "$(dirname "$0")/suite.sh"

inside_slurm 2 "$LAUNCHER"
suite tests/mp/startup tests/mp/p2p_order tests/mp/team_create tests/mp/finalize_delivery
if [ -n "${FULL:-}" ] && [ -z "${PROGRAMS:-}" ]; then
    suite tests/mp/random_mixed tests/mp/rma/rma_symmetric
    # As chosen: each algorithm goes the same ways, and on two hosts srun_hosts.sh has them all.
    suite_run -q 4,7 -t 120 -- tests/coll/mp_coll.mp
fi
suite_end
