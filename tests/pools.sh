#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pools.sh MAKE TEST...: run tests in two pools at once.
# Those that compute run two at a time, those that wait six at a time.
#
# Scripts with hosts and time-outs wait most of their time; they fill the cores beside programs that compute. Call it in
# the build folder, with the programs built: two pools that build one would race. Tests begin in the order of their
# seconds in budget.txt, the longest first. Behind them come those that LONG names, and then the others.

make=$1
shift
unset MAKEFLAGS MFLAGS

# pool compute|wait TEST...: those of this kind, the longest first
pool() {
    local kind=$1
    shift
    printf '%s\n' "$@" | awk -v long=" ${LONG:-} " -v kind="$kind" -v budget="$(dirname "$0")/budget.txt" '
    BEGIN { while ((getline line < budget) > 0) if (line !~ /^#/ && split(line, f, " ") == 2) seconds["tests/" f[1]] = f[2] }
    function waits(name) { return name ~ /\.sh$/ && name !~ /\/(lint|bench|install|examples|coll)\// || name ~ /\/(faults\/.*\.mp|conn\/conn_(faults|hostile|limits))$/ }
    NF && waits($1) == (kind == "wait") {
        base = $1
        sub(/\.(sh|mp)$/, "", base)
        print base in seconds ? seconds[base] : index(long, " " $1 " ") ? 1 : 0, NR, $1
    }' |
        sort -k 1,1nr -k 2,2n | cut -d ' ' -f 3 | paste -s -d ' '
}

# run_pool NAME JOBS TESTS
run_pool() {
    [ -z "$3" ] || "$make" -s -k -j "$2" check-TESTS TESTS="$3" check_PROGRAMS= TEST_SUITE_LOG="tests/$1.log"
}

computing=$(pool compute "$@") waiting=$(pool wait "$@") rc=0
run_pool waiting 6 "$waiting" &
run_pool computing 2 "$computing" || rc=1
wait $! || rc=1
exit $rc
