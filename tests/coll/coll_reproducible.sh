#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# coll_reproducible.sh: compare the bits of sums over several runs.
# Of one size and placement.
here=$(cd "$(dirname "$0")" && pwd)
top_srcdir=${top_srcdir:-$(dirname "$(dirname "$here")")}
top_builddir=${top_builddir:-$PWD}
. "$top_srcdir/tests/env.sh"
program=$top_builddir/tests/coll/mp_coll.mp
status=0

bits_of() { # ranks, environment...
    local n=$1
    shift
    timeout 60 env "$@" "$XRUN" -n "$n" "$program" --only bits 2>&1 | sed -n 's/^bits //p'
}

for n in 2 5 8; do
    for how in RANK_COLL= RANK_COLL=allreduce:ring,reduce_scatter:ring \
        RANK_COLL=allreduce:rabenseifner,reduce_scatter:recursive_halving \
        RANK_COLL=allreduce:recursive_doubling,reduce_scatter:pairwise; do
        first=$(bits_of "$n" "$how")
        again=$(bits_of "$n" "$how" RANK_SPIN=0)
        if [ -n "$first" ] && [ "$first" = "$again" ]; then
            echo "ok - n=$n $how: $first"
        else
            echo "not ok - n=$n $how: '$first', then '$again'"
            status=1
        fi
    done
done
exit $status
