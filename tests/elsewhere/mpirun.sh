#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpirun.sh: run our programs under Debian's Open MPI 4; see suite.sh.
#
# tests/mp/rank_spawn is not run here. From four ranks it hangs about once in 40 runs on a busy machine (4.1.4), and that is the
# launcher: one of the new ranks is in PMIx_Init and waits for the server's answer, the other in the first fence and waits for that
# rank. All threads of mpirun are idle, and it has printed "PMIX ERROR: BAD-PARAM in file pmix_event_notification.c". No process has
# died, so that only mp.sh's time limit ends the wait of the parents.
LAUNCHER=mpirun
. "$(dirname "$0")/suite.sh"

why=$(launcher_able) || suite_skip "$why"
suite_all
suite_end
