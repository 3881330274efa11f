#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nested_launcher.sh: run another launcher inside a rank of xrun.
# Its ranks inherit XRUN_JOB and XRUN_BOARD, and ignore them: their PMIx namespace is another one.
. "$top_srcdir/tests/env.sh"
program=$top_builddir/tests/mp/misuse.mp
work=$(mktemp -d "$top_builddir/tests/nested.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# two_ranks NAME COMMAND...: both ranks come to their end.
two_ranks() {
    local name=$1 rc
    shift
    TMPDIR=$work timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    if [ $rc = 0 ] && [ "$(grep -c 'mp: done$' "$work/out")" = 2 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name: exit code $rc"
        tail -n 8 "$work/out" "$work/err" | sed 's/^/# /'
        bad=1
    fi
}

# As under another launcher: both ranks inherit the slot of one rank of another job.
two_ranks "another job's board is ignored" \
    "$XRUN" -q -n 2 sh -c 'XRUN_JOB=outer XRUN_BOARD=${XRUN_BOARD%:*}:0 exec "$0"' "$program"

if command -v mpirun.openmpi >/dev/null; then
    two_ranks "Open MPI's mpirun in a rank of xrun" \
        "$XRUN" -q -n 1 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        mpirun.openmpi --oversubscribe --bind-to none -n 2 "$program"
    if grep -q 'world of its own' "$work/err"; then
        echo "not ok - no word of a world of one where mpirun serves the ranks"
        bad=1
    else
        echo "ok - no word of a world of one where mpirun serves the ranks"
    fi
else
    echo "ok - Open MPI's mpirun in a rank of xrun # SKIP there is no mpirun.openmpi"
fi

# The warning about programs of which no rank joins the job: silent for ranks that another launcher serves.
none=$top_builddir/tests/launcher/programs/.libs/libmpi_none.so
joins() {
    TMPDIR=$work timeout -k 5 60 "$XRUN" -n 2 sh -c "env LD_PRELOAD=$none $1 sleep 0.7; :" >"$work/out" 2>"$work/err" </dev/null
    grep -c 'has joined the job although' "$work/err"
}
expect() { # NAME COUNT GOT
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        sed 's/^/# /' "$work/err"
        bad=1
    fi
}
if [ -e "$none" ]; then
    expect "ranks that join nothing are warned about" 1 "$(joins MINE=yes)"
    expect "but not ranks of another PMIx namespace" 0 "$(joins PMIX_NAMESPACE=outer)"
    expect "nor those that another PMI-1 serves" 0 "$(joins PMI_FD=97)"
fi
exit $bad
