#!/bin/bash
# srun.sh: our programs under a real Slurm on one host; see suite.sh.
LAUNCHER=srun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
with_slurm 1
suite_all
suite_end
