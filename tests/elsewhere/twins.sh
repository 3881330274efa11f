#!/bin/bash
# twins.sh: our programs under Slurm on two hosts that have the ipc namespace and the boot id in common, by which UCX
# tells hosts from each other, but no memory.
LAUNCHER=srun_hosts
export HOSTS_TWINS=1
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
with_slurm 2
suite tests/mp/boot tests/mp/order tests/mp/teams tests/mp/finalize
[ -z "${FULL:-}" ] || suite tests/mp/storm tests/mp/rma tests/coll/mp_coll
suite_end
