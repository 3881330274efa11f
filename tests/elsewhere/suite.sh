# SPDX-License-Identifier: BSD-3-Clause
# suite.sh: run programs of several ranks under another launcher.
# Sourced by the tests of this folder, which set LAUNCHER.
#
# Runs the programs of tests/mp and tests/coll by their files "cases", but with LAUNCHER in place of xrun: a few
# of them in "make check", all with FULL=1, each at the sizes of a quick run, or at the largest of them where it goes on
# between the ranks. Environment: PROGRAMS, instead of those.

. "$(dirname "$0")/../inside.sh"
export LAUNCHER
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

# suite PROGRAM...: names as in tests/mp/init_finalize
suite() {
    local program
    for program in ${PROGRAMS:-"$@"}; do
        suite_run "$program.mp"
    done
}

suite_run() { # arguments of mp.sh
    local out
    out=$(mktemp "$top_builddir/tests/suite.XXXXXX") || exit 1
    FULL='' bash "$top_srcdir/tests/mp.sh" "$@" 2>&1 | tee "$out" | grep -v '^# .*: .* passed, .* failed$'
    [ "${PIPESTATUS[0]}" != 1 ] || grep -q '^not ok' "$out" || echo "not ok - $*: mp.sh failed" | tee -a "$out"
    passed=$((passed + $(grep -c '^ok' "$out"))) failed=$((failed + $(grep -c '^not ok' "$out")))
    rm -f "$out"
}

# A rank is killed: whatever the launcher makes of it, the job is over in ten seconds, badly, and nothing is left.
suite_faults() {
    local scene
    [ -z "${PROGRAMS:-}" ] || return 0
    for scene in recv echo-5M allreduce "barrier --victim 0"; do
        # shellcheck disable=SC2086 # a word, and options
        suite_run -q 4 -c default -t 10 -k any -e 137 -- tests/faults/death_in_call.mp --in $scene
    done
}

suite_quick="tests/mp/init_finalize tests/mp/p2p_order tests/mp/finalize_delivery tests/mp/rank_abort"
# With FULL=1: what meets the launcher, and what goes on between the ranks.
suite_launched="tests/mp/init_finalize tests/mp/startup tests/mp/argument_errors tests/mp/resource_leak tests/mp/finalize_delivery tests/mp/rank_abort"
suite_between="tests/mp/p2p_order tests/mp/p2p_recv tests/mp/p2p_wait tests/mp/random_mixed tests/mp/p2p_reverse_tags tests/mp/p2p_flood tests/mp/team_create
    tests/mp/rma/rma_symmetric tests/mp/rma/rma_atomics tests/mp/rma/rma_signals tests/mp/rma/rma_putget tests/mp/rma/rma_keys tests/mp/rma/alloc_no_memory"
# Another PMIx than ours has its thread in the process, and another launcher is at the other end of its descriptors.
suite_threads="threads/threads_p2p threads/threads_wake waits/event_loop"
# Not run, as xrun's runs show them or as they take too long:
#   between ranks  p2p_requests, matched_probe, p2p_iov, p2p_send_before_recv, symmetric_heap, rma_random,
#                  rma_rules, threads_rma
#   judge times    p2p_fairness, progress_overlap (more than a minute on a busy machine)
#   much memory    p2p_large, size_past_4gib, iov_past_2gib
#   lose a rank    threads_death, threads_mix: suite_faults shows what launchers make of that
#   collectives    coll_reproducible: mp_coll runs them
#   rank_spawn     prterun.sh runs it. Under mpirun (Open MPI 4) it hangs now and then (see mpirun.sh); Slurm starts no jobs.
# With two ranks all of them but progress_overlap pass under mpirun, and the short ones under prterun.

# suite_pairs NAME...: two ranks of each program, as most of its lines in "cases" run it
suite_pairs() {
    local name
    for name do
        suite_run -q 2 -c default -t 120 -- "tests/mp/$name.mp"
    done
}

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

# suite_one_host: run what goes on between ranks of one host. They meet there as under xrun, whatever started them. So the
# ucx channel, and each algorithm of the collectives, is left to xrun's runs, except one check that ucx comes up. The choice of
# algorithms depends on what the launcher reports of the host: they are run as chosen. Fewer ranks than the most of a
# quick run are left to xrun's runs as well.
suite_one_host() {
    LARGEST=1 CHANNELS=${CHANNELS:-default} suite $suite_between
    suite_run -q 4 -c ucx -t 60 -- tests/mp/p2p_order.mp
    suite_run -q 3 -c ucx -t 120 -- tests/mp/rma/rma_symmetric.mp
    suite_run -q 2,4,7 -c default -t 120 -- tests/coll/mp_coll.mp
    suite_run -q 5 -c ucx -t 120 -- tests/coll/mp_coll.mp
}

# Run all that the environment names.
suite_all() {
    # shellcheck disable=SC2086 # lists
    if [ -z "${FULL:-}" ] || [ -n "${PROGRAMS:-}" ]; then
        suite $suite_quick
    elif [ "$LAUNCHER" = srun_hosts ]; then
        suite $suite_launched
        LARGEST=1 suite $suite_between tests/coll/mp_coll
    else
        suite $suite_launched
        suite_one_host
        [ "$LAUNCHER" = srun ] || suite_pairs $suite_threads # its PMIx is the one that we were built with
    fi
    suite_faults
}

suite_end() {
    echo "# $LAUNCHER: $passed passed, $failed failed"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
    exit
}
