#!/bin/bash
# mpirun.sh: our programs under Debian's Open MPI 4; see suite.sh.
LAUNCHER=mpirun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
suite_all
suite_end
