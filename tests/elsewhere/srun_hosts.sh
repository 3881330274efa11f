#!/bin/bash
# srun_hosts.sh: our programs under a real Slurm on two hosts, which do not share memory; see suite.sh.
LAUNCHER=srun_hosts
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
with_slurm 2
# shellcheck disable=SC2086 # lists
if [ -n "${FULL:-}" ]; then suite $suite_full; else suite $suite_quick; fi
suite_end
