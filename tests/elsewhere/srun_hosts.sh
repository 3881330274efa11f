#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# srun_hosts.sh: run our programs under a real Slurm on two hosts; see suite.sh.
# The hosts share no memory.
LAUNCHER=srun_hosts
. "$(dirname "$0")/suite.sh"

inside_slurm 2 "$LAUNCHER"
suite_all

# A peer that has left in order is not taken for dead by the last to exchange with it: what the others then do breaks here and there.
all_in_peace() {
    local out i
    launcher_command 4
    for i in 1 2 3 4 5 6; do
        out=$(RANK_LOG=info timeout 60 "${launch[@]}" "$top_builddir/bench/initfin" 2>&1 </dev/null) && ! grep -q ' died$' <<<"$out" ||
            { echo "# start $i: $out"; return 1; }
    done
}
[ -n "${PROGRAMS:-}" ] || suite_check "six starts of ranks that only join and leave: all do in peace" all_in_peace

# Over a slow cable that loses packets, and a thin one.
if [ -n "${FULL:-}" ]; then
    suite_check "a lossy cable is laid" "$top_srcdir/tests/hosts.sh" delay hostb 2000 1
    suite_check "a thin cable is laid" "$top_srcdir/tests/hosts.sh" rate hosta 200mbit
    suite tests/mp/p2p_order tests/mp/finalize_delivery
fi
suite_end
