# SPDX-License-Identifier: BSD-3-Clause
# xpmem.sh: transfer large messages and registered memory by a stand-in for XPMEM.
# The stand-in is xpmem_standin.c.
case "${SAN_CFLAGS:-}" in *sanitize*) echo "ok - xpmem # SKIP sanitizers have the heap that the stand-in needs"; exit 77 ;; esac
standin=$top_builddir/.libs/libstandin.so
work=$(mktemp -d "$top_builddir/tests/xpmem.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# has NAME: so many ranges in all were attached, refused, or left at the end, by processes that had any
has() { awk -v name="$1" '{ for (i = 1; i < NF; i++) if ($i == name) n += $(i + 1) } END { print n + 0 }' "$work/log" 2>/dev/null; }

# with WHAT OPTIONS... -- PROGRAM ARGUMENTS...: with the stand-in; leaves $work/log
with() {
    local what=$1
    shift
    : >"$work/log"
    bash "$top_srcdir/tests/mp.sh" -1 -c default -t 60 -w "env LD_PRELOAD=$standin" -E RANK_XPMEM="${xpmem:-$standin}" \
        -E STANDIN_LOG="$work/log" "$@" >"$work/out" 2>&1
    [ $? = 0 ] && grep -q '^ok' "$work/out" && eval "$expect"
    if [ $? = 0 ]; then
        echo "ok - $what"
    else
        echo "not ok - $what"
        sed 's/^/    /' "$work/out" "$work/log"
        bad=1
    fi
}

used='[ $(has had) -gt 0 ] && [ $(has left) = 0 ]'
none='[ $(has had) = 0 ]'
program=tests/mp/xpmem_attach.mp
expect=$used
with "ranges that are kept" -q 2 -f 2 -E RANK_LARGE=xpmem -- $program
# The killed one writes no line; the survivor closes nothing of it but what it had.
with "a sender dies under a copy" -q 2 -f 2 -k 1 -e 137 -x '--on-failure continue' -E RANK_LARGE=xpmem -- $program --die
with "the owner of memory dies under a get" -q 2 -f 2 -k 1 -e 137 -x '--on-failure continue' -E RANK_LARGE=xpmem -- $program --die-get
with "by the receiver" -q 2 -f 2,3 -E RANK_LARGE=xpmem -- tests/mp/p2p_large.mp
with "by both sides" -q 3 -f 2,3 -E RANK_LARGE=xpmem2 -- tests/mp/p2p_large.mp
with "as the table says, without CMA" -q 2 -f 2,3 -E RANK_CMA=off -E RANK_PATHS=none -- tests/mp/p2p_large.mp
with "collectives" -q 3 -f 2,3 -E RANK_LARGE=xpmem -E RANK_COLL=bcast:direct,allreduce:direct,allgather:direct,alltoall:direct -- \
    tests/coll/mp_coll.mp --only mixed
with "keys" -q 2 -f 2,3 -E RANK_LARGE=xpmem -- tests/mp/rma/rma_keys.mp
expect="$used && [ \$(has refused) -gt 0 ]"
with "each third refused" -q 2 -f 2,3 -E STANDIN_REFUSE=3 -E RANK_LARGE=xpmem -- tests/mp/p2p_large.mp
expect="$none && [ \$(has refused) = 0 ]"
xpmem=off with "RANK_XPMEM=off" -q 2 -f 2 -E RANK_LARGE=xpmem -- tests/mp/p2p_large.mp
xpmem=/nonexistent/libxpmem.so with "a library that is not there" -q 2 -f 2 -E RANK_LARGE=xpmem -- tests/mp/p2p_large.mp
expect="$used && [ \$(has had) = 2 ]" # each tried it on itself
with "a module that does not follow pages" -q 2 -f 2 -E STANDIN_STALE=yes -E RANK_LARGE=xpmem -- tests/mp/p2p_large.mp

# What rankinfo reports and measures of it.
info() {
    LD_PRELOAD=$standin RANK_XPMEM=$standin RANK_PATHS=$work/paths timeout 60 "$top_builddir/rankinfo" "$@" >"$work/out" 2>"$work/log"
}
info --paths && grep -q '^  xpmem  *memory of other ranks is attached' "$work/out" && grep -qE '^  1 MiB +xpmem2? ' "$work/out"
[ $? = 0 ] && echo "ok - rankinfo" || { echo "not ok - rankinfo"; sed 's/^/    /' "$work/out" "$work/log"; bad=1; }
if [ "$(nproc)" -ge 2 ]; then
    # It gives up after 10 s where something else has the cores.
    if ! info --calibrate && ! info --calibrate && grep -q 'is the machine overloaded' "$work/log"; then
        echo "ok - rankinfo --calibrate # SKIP the machine is busy"
    else
        info --paths && [ ! -s "$work/log" ] && awk '$1 == 1 && $2 == "MiB" && $10 > 0 && $11 > 0 { ok = 1 } END { exit !ok }' "$work/out" &&
            grep -q '^  rates  *measured here' "$work/out"
        [ $? = 0 ] && echo "ok - rankinfo --calibrate" || { echo "not ok - rankinfo --calibrate"; sed 's/^/    /' "$work/out" "$work/log"; bad=1; }
    fi
fi
exit $bad
