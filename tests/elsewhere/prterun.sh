#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# prterun.sh: run our programs under PRRTE; see suite.sh.
# With its PMIx and with our own.
LAUNCHER=prterun
. "$(dirname "$0")/suite.sh"

# Further jobs, and deaths among them: a world without a death sees it, whatever the launcher does to the rest.
suite_spawn() {
    [ -z "${PROGRAMS:-}" ] || return 0
    suite tests/mp/rank_spawn
    suite_run -q 2 -c default -t 60 -e any -- tests/mp/rank_spawn.mp --failures
    suite_run -q 2 -c default,tcp -t 60 -e any -- tests/mp/rank_spawn.mp --die child
    suite_run -q 2 -c default -t 60 -e any -- tests/mp/rank_spawn.mp --die child --spoke
    suite_run -q 2 -c default -t 60 -k any -e any -o '^child: done' -- tests/mp/rank_spawn.mp --die parent
    suite_run -q 2 -c default -t 60 -k any -e any -o '^child: done' -- tests/mp/rank_spawn.mp --die parent --spoke
    suite_run -q 2 -c default -t 60 -k any -e any -O 'refused: success' -- tests/mp/rank_spawn.mp --die root
}

why=$(launcher_able) || suite_skip "$why"
suite_all
suite_spawn
LAUNCHER=prterun_own
# shellcheck disable=SC2086 # a list
suite $suite_quick
suite_end
