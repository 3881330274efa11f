#!/bin/bash
# prterun.sh: our programs under PRRTE, the launcher of Open MPI 5; with its PMIx and with our own; see suite.sh.
LAUNCHER=prterun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
# shellcheck disable=SC2086 # lists
if [ -n "${FULL:-}" ]; then suite $suite_full; else suite $suite_quick; fi
LAUNCHER=prterun_own
suite $suite_quick
suite_end
