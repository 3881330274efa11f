#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# death_exit_code.sh: end the job within a second of a rank's failure.
# Whatever the others do; xrun's exit code gives the failure.

limit_us=1000000
case ${SAN_CFLAGS:-} in ?*) limit_us=4000000 ;; esac
work=$(mktemp -d "$top_builddir/tests/faults/kill.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# how, exit code, number of ranks; again: it was late once, as a busy machine may be
try() {
    local how=$1 expect=$2 n=$3 again=${4:-} rc died late
    timeout 20 "$XRUN" -n "$n" "$top_builddir/tests/faults/death_last_output.mp" --then "$how" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    died=$(sed -n 's/.*last words of rank [0-9]* at \([0-9]*\) us.*/\1/p' "$work/out")
    late=$((${EPOCHREALTIME/./} - ${died:-0}))
    if [ "$expect" = nonzero ] && [ $rc != 0 ] && [ $rc != 124 ]; then
        rc=nonzero
    fi
    if [ -z "$again" ] && [ -n "$died" ] && [ $late -gt $limit_us ]; then
        try "$how" "$expect" "$n" again
        return
    fi
    if [ -z "$died" ] || [ $late -gt $limit_us ] || [ "$rc" != "$expect" ]; then
        echo "not ok - $how with $n ranks: exit code $rc, not $expect; ended after $((late / 1000)) ms"
        head -n 20 "$work/err" | sed 's/^/# /'
        failed=1
    elif [ "$(grep -c "rank $((n - 1)) " "$work/err")" != 1 ]; then
        echo "not ok - $how with $n ranks: not one line about rank $((n - 1))"
        head -n 20 "$work/err" | sed 's/^/# /'
        failed=1
    else
        echo "ok - $how with $n ranks (known and ended in $((late / 1000)) ms)"
    fi
}

for n in 2 5 16; do
    try kill 137 $n
    try exit 5 $n
    try leave nonzero $n
done
exit $failed
