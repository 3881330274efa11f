#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# coll_reproducible.sh: compare the bits of sums over several runs.
# Of one size and placement; with RANK_COLL_REPRODUCIBLE of all placements, channels and algorithms.
here=$(cd "$(dirname "$0")" && pwd)
top_srcdir=${top_srcdir:-$(dirname "$(dirname "$here")")}
top_builddir=${top_builddir:-$PWD}
. "$top_srcdir/tests/env.sh"
program=$top_builddir/tests/coll/mp_coll.mp
status=0

bits_of() { # ranks, environment...
    local n=$1
    shift
    # shellcheck disable=SC2086 # wrapper: a word and options, or nothing
    timeout 60 env "$@" "$XRUN" -n "$n" ${wrapper:-} "$program" --only bits 2>&1 | sed -n 's/^bits //p'
}

for n in 2 5 8; do
    for how in RANK_COLL= RANK_COLL=allreduce:ring,reduce_scatter:ring,reduce_scatterv:pairwise \
        RANK_COLL=allreduce:rabenseifner,reduce_scatter:recursive_halving,scan:chain,exscan:slices \
        RANK_COLL=allreduce:recursive_doubling,reduce_scatter:pairwise,reduce_scatterv:slices,scan:slices; do
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

one_tree() { # name, environment...: the same bits as $first?
    local name=$1 bits
    shift
    bits=$(bits_of "$n" RANK_COLL_REPRODUCIBLE=on "$@")
    if [ -n "$first" ] && [ "$first" = "$bits" ]; then
        echo "ok - n=$n, one tree, $name"
    else
        echo "not ok - n=$n, one tree, $name: '$first', then '$bits'"
        status=1
    fi
}

for n in 4 7; do
    first=$(bits_of "$n" RANK_COLL_REPRODUCIBLE=on)
    one_tree "without arenas" RANK_COLL_SHM=off
    one_tree "other algorithms" RANK_COLL=allreduce:ring,reduce:binomial,reduce_scatter:pairwise,scan:chain,exscan:slices
    one_tree "further algorithms" RANK_COLL=allreduce:shm,allreduce:rabenseifner,reduce:rabenseifner,reduce_scatter:ring,reduce_scatterv:slices,scan:shm
    if unshare -m -p -f --mount-proc true 2>/dev/null; then # root
        wrapper="bash $top_srcdir/tests/elsewhere/private_shm" one_tree "each rank on a node of its own" RANK_SPIN=0
        wrapper="bash $top_srcdir/tests/elsewhere/private_shm --odd" one_tree "some on nodes of their own" RANK_SPIN=0
    else
        echo "ok - n=$n, one tree, several nodes # SKIP no namespaces can be made here; it needs root"
    fi
done
exit $status
