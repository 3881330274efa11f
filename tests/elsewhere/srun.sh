#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# srun.sh: run our programs under a real Slurm on one host; see suite.sh.
LAUNCHER=srun
. "$(dirname "$0")/suite.sh"

inside_slurm 1 "$LAUNCHER"
suite_all

# Without --mpi=pmix every rank is alone, and reports it: the user meant something else.
alone() {
    local said
    said=$(timeout 30 "$top_srcdir/tests/hosts.sh" exec hosta \
        srun -Q -N1 -n2 --mpi=none "$top_builddir/tests/mp/startup.mp" --alone 2>&1)
    [ "$(grep -c 'there is no PMIx server: this process is a world of its own' <<<"$said")" = 2 ] &&
        [ "$(grep -c '^mp: done$' <<<"$said")" = 2 ] || { sed 's/^/# /' <<<"$said"; return 1; }
}
suite_check "ranks without PMIx are alone and warn" alone
suite_end
