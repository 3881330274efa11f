#!/bin/bash
# srun_hosts.sh: our programs under a real Slurm on two hosts, which do not share memory; see suite.sh.
LAUNCHER=srun_hosts
. "$(dirname "$0")/suite.sh"

inside_slurm 2 "$LAUNCHER"
suite_all

# Over a slow cable that loses packets, and a thin one.
if [ -n "${FULL:-}" ]; then
    suite_check "a lossy cable is laid" "$top_srcdir/tests/hosts.sh" delay hostb 2000 1
    suite_check "a thin cable is laid" "$top_srcdir/tests/hosts.sh" rate hosta 200mbit
    suite tests/mp/order tests/mp/finalize
fi
suite_end
