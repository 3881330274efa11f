#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# separate_shm.sh: run ranks of one host that share no memory.
# See the script private_shm. Hosts that share the ipc namespace and the boot id seem so, and so do containers on one host.
top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-$PWD}
export top_srcdir top_builddir

if ! unshare -m -p -f --mount-proc true 2>/dev/null; then
    echo "ok - separate shm # SKIP no namespaces can be made here; it needs root"
    exit 77
fi
passed=0 failed=0
out=$(mktemp "$top_builddir/tests/separate_shm.XXXXXX") || exit 1
trap 'rm -f "$out"' EXIT

# separate OPTIONS... -- PROGRAM...: with all ranks apart, and with half of them
separate() {
    local how
    for how in private_shm "private_shm --odd"; do
        bash "$top_srcdir/tests/mp.sh" -w "$top_srcdir/tests/elsewhere/$how" "$@" >"$out" 2>&1
        sed "s/^\(not \)*ok - /&$how: /; /^# .*: .* passed, .* failed\$/d" "$out"
        passed=$((passed + $(grep -c '^ok' "$out"))) failed=$((failed + $(grep -c '^not ok' "$out")))
    done
}

# Further sizes, with FULL=1, up to what shows pairs of all kinds: those of the programs themselves are xrun's and Slurm's.
separate -q 2,3,8 -f 2,3,4,8,16 -t 30 -- tests/mp/startup.mp --contact
separate -q 4 -f 2,4,7 -t 30 -- tests/mp/p2p_order.mp
separate -q 5 -f 2,5,8 -t 90 -c default -- tests/mp/team_create.mp --short
separate -q 3 -f 2,3,4 -t 60 -c default -- tests/mp/rma/rma_symmetric.mp
for program in rma_atomics rma_signals rma_putget rma_keys rma_shared_memory; do # some ranks map each other's memory, some do not
    separate -q 3 -f 2,3 -t 60 -c default -- tests/mp/rma/$program.mp
done
separate -q 4 -f 3,4,8 -t 60 -c default -- tests/coll/mp_coll.mp --only mixed
separate -q 3 -f 2,3 -t 30 -c default -e 7 -k n -o 'as the test wants it' -- tests/mp/rank_abort.mp
for scene in recv any-source echo-5M allreduce; do
    separate -q 4 -f 3,4,8 -t 40 -c default -k 1 -e 137 -x '--on-failure continue' -- tests/faults/death_in_call.mp --in $scene
done

echo "# separate_shm: $passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
