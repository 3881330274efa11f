#!/bin/bash
# mpirun.sh: our programs under Debian's Open MPI 4; see suite.sh.
LAUNCHER=mpirun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
# shellcheck disable=SC2086 # lists
if [ -n "${FULL:-}" ]; then suite $suite_full; else suite $suite_quick; fi
suite_end
