#!/bin/bash
# prterun.sh: our programs under PRRTE, the launcher of Open MPI 5; with its PMIx and with our own; see suite.sh.
LAUNCHER=prterun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
suite_all
suite tests/mp/spawn
LAUNCHER=prterun_own
# shellcheck disable=SC2086 # a list
suite $suite_quick
suite_end
