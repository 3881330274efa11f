#!/bin/bash
# srun_hosts.sh: our programs under a real Slurm on two hosts, which do not share memory; see suite.sh.
LAUNCHER=srun_hosts
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
with_slurm 2
suite_all
suite_end
