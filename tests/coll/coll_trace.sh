#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# coll_trace.sh: print a line for each collective call.
here=$(cd "$(dirname "$0")" && pwd)
top_srcdir=${top_srcdir:-$(dirname "$(dirname "$here")")}
top_builddir=${top_builddir:-$PWD}
. "$top_srcdir/tests/env.sh"
program=$top_builddir/tests/coll/mp_coll.mp
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

judge() { # exit code, text
    [ "$1" = 0 ] && echo "ok - $2" && return
    echo "not ok - $2"
    head -5 "$work/err"
    status=1
}

trace() { # environment...: lines of both ranks in $work/err
    timeout 60 env "$@" "$XRUN" -n 2 "$program" --full --only bits >"$work/out" 2>"$work/err"
}

trace RANK_COLL_TRACE=off
[ $? = 0 ] && ! grep -q ': collective ' "$work/err"
judge $? "none by default"
trace RANK_COLL_TRACE=on
[ $? = 0 ] && for rank in 0 1; do
    grep "rank $rank.*: collective " "$work/err" | sed 's/.*: collective \([0-9]*\) of team \(.*\), [0-9.]* us$/\1 \2/' |
        sort -n >"$work/$rank"
done
cmp -s "$work/0" "$work/1" && [ "$(wc -l <"$work/0")" -gt 100 ]
judge $? "both ranks print the same calls"
grep '(2 ranks)' "$work/0" | cut -d' ' -f1 | cmp -s - <(seq "$(wc -l <"$work/0")")
judge $? "each call has its number"
missing=
for line in 'allreduce, 4 bytes, shm' 'allreduce, 20000 bytes, direct' 'reduce_scatter, 36 bytes, shm' \
    'reduce, 36 bytes, shm' 'bcast, 24 bytes, shm'; do
    grep -q ": $line\$" "$work/0" || missing="$missing; $line"
done
[ -z "$missing" ]
judge $? "the line has bytes and algorithm${missing:+, but not$missing}"
exit $status
