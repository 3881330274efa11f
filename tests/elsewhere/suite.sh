# suite.sh: programs of several ranks under another launcher. Sourced by the tests of this folder, which set LAUNCHER.
#
# Runs the programs of tests/mp and tests/coll as their files "cases" say, but with LAUNCHER in place of xrun: a few
# of them in "make check", all with FULL=1, each at the sizes of a quick run. Environment: PROGRAMS, instead of those.

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-$PWD}
export top_srcdir top_builddir LAUNCHER
# What other generations of PMIx leave unfreed is not ours; leaks of our own are found under xrun.
[ -z "${SAN_CFLAGS:-}" ] || export RK_LEAKS=0
. "$top_srcdir/tests/env.sh"
. "$top_srcdir/tests/elsewhere/launchers.sh"

passed=0 failed=0

# suite_skip WHY: and no more
suite_skip() {
    echo "ok - $LAUNCHER # SKIP $1"
    exit 77
}

# with_slurm N: from here on this script runs again, with N simulated hosts and Slurm on them
with_slurm() {
    [ -z "${RK_SLURM_UP:-}" ] || return 0
    RK_SLURM_UP=1 exec "$top_srcdir/tests/hosts.sh" run "$1" bash -c \
        '"$0" start && exec bash "$@"' "$top_srcdir/tests/elsewhere/slurm.sh" "$0"
}

# suite PROGRAM...: names as in tests/mp/life
suite() {
    local program out
    out=$(mktemp "$top_builddir/tests/suite.XXXXXX") || exit 1
    for program in ${PROGRAMS:-"$@"}; do
        suite_run "$program.mp"
    done
    rm -f "$out"
}

suite_run() { # arguments of mp.sh
    FULL='' bash "$top_srcdir/tests/mp.sh" "$@" 2>&1 | tee "$out" | grep -v '^# .*: .* passed, .* failed$'
    [ "${PIPESTATUS[0]}" != 1 ] || grep -q '^not ok' "$out" || echo "not ok - $*: mp.sh failed" | tee -a "$out"
    passed=$((passed + $(grep -c '^ok' "$out"))) failed=$((failed + $(grep -c '^not ok' "$out")))
}

# A rank is killed: whatever the launcher makes of it, the job is over in ten seconds, badly, and nothing is left.
suite_faults() {
    local scene out
    [ -z "${PROGRAMS:-}" ] || return 0
    out=$(mktemp "$top_builddir/tests/suite.XXXXXX") || exit 1
    for scene in recv "echo --bytes 5000000" allreduce "barrier --victim 0"; do
        # shellcheck disable=SC2086 # a word, and options
        suite_run -q 4 -c default -t 10 -k any -e 137 -- tests/faults/death.mp --in $scene
    done
    rm -f "$out"
}

suite_quick="tests/mp/life tests/mp/order tests/mp/finalize tests/mp/abort"
suite_full="tests/mp/life tests/mp/boot tests/mp/args tests/mp/order tests/mp/recv tests/mp/wait tests/mp/storm
    tests/mp/reverse tests/mp/flood tests/mp/teams tests/mp/rma tests/mp/limits tests/mp/leak tests/mp/finalize
    tests/mp/abort tests/coll/mp_coll"

# suite_check WHAT COMMAND...: one more
suite_check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok - $LAUNCHER $what"
    else
        failed=$((failed + 1))
        echo "not ok - $LAUNCHER $what: $*"
    fi
}

# All that the environment asks for.
suite_all() {
    # shellcheck disable=SC2086 # lists
    if [ -n "${FULL:-}" ]; then suite $suite_full; else suite $suite_quick; fi
    suite_faults
}

suite_end() {
    echo "# $LAUNCHER: $passed passed, $failed failed"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
    exit
}
