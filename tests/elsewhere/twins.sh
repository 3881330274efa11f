#!/bin/bash
# twins.sh: our programs under Slurm on two hosts that have the ipc namespace and the boot id in common, by which UCX
# tells hosts from each other, but no memory.
LAUNCHER=srun_hosts
export HOSTS_TWINS=1
. "$(dirname "$0")/suite.sh"

inside_slurm 2 "$LAUNCHER"
suite tests/mp/boot tests/mp/order tests/mp/teams tests/mp/finalize
if [ -n "${FULL:-}" ] && [ -z "${PROGRAMS:-}" ]; then
    suite tests/mp/storm tests/mp/rma
    # As chosen: each algorithm goes the same ways, and on two hosts srun_hosts.sh has them all.
    suite_run -q 4,7 -t 120 -- tests/coll/mp_coll.mp
fi
suite_end
