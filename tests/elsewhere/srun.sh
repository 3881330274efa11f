#!/bin/bash
# srun.sh: our programs under a real Slurm on one host; see suite.sh.
LAUNCHER=srun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
with_slurm 1
# shellcheck disable=SC2086 # lists
if [ -n "${FULL:-}" ]; then suite $suite_full; else suite $suite_quick; fi
suite_end
