#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# env_variables.sh: set each variable of the library to its least and largest.
# One at a time and all at once, with a random program of two ranks that checks its data. A variable without a line below fails
# the test.
program=$top_builddir/tests/mp/random_mixed.mp
table=$top_srcdir/lib/base/conf_table.c
work=$(mktemp -d "$top_builddir/tests/variables.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
case "${SAN_CFLAGS:-}" in *sanitize*) slow=5 ;; *) slow=1 ;; esac
bad=0

# Name, least, largest; of words the two that are farthest from what is built in. Sizes and times: as the table has them.
variables='RANK_LOG error debug
RANK_ERRORS quiet abort
RANK_CRASH_STACK off on
RANK_CHANNELS self,ucx self,shm
RANK_EAGER_MAX 0 1M
RANK_EAGER_WINDOW 0 1G
RANK_UNEXPECTED_MAX 0 1T
RANK_RNDV_UNEXPECTED_MAX 0 1T
RANK_CONN_MEMORY 64K 1T
RANK_SPIN 0 3600s
RANK_PROGRESS_THREAD off on
RANK_CMA off on
RANK_LARGE cma ring_nt
RANK_PATHS none none
RANK_SHM_BOX 1 64M
RANK_COLL barrier:dissemination,bcast:chain,allreduce:ring allreduce:shm
RANK_COLL_SHM off on
RANK_COLL_REPRODUCIBLE on off
RANK_COLL_TRACE on off
RANK_SPAWN_TIMEOUT 0 86400s
RANK_UCX_RMA off on
RANK_NICS lo lo
RANK_SECRET_FILE - -
RANK_CUDA auto off
RANK_CUDA_UCX auto off
RANK_MODULES - -'

missing=
for name in $(grep -o '{"RANK_[A-Z0-9_]*"' "$table" | tr -d '{"'); do
    grep -q "^$name " <<<"$variables" || missing="$missing $name"
done
if [ -z "$missing" ]; then echo "ok - every variable has a line here"; else echo "not ok - no line here for$missing"; bad=1; fi

# Without UCX there is shared memory only.
ucx=1
[ -e "$top_builddir/.libs/librank-ucx.so" ] || ucx=

# try NAME VARIABLE=VALUE...
try() {
    local name=$1 rc
    shift
    timeout -k 5 $((30 * slow)) env "$@" "$XRUN" -q -n 2 "$program" --rounds 1 --steps 40 --max 200000 --cuts 0 >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    if [ $rc = 0 ] && [ "$(grep -c 'mp: done$' "$work/out")" = 2 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name: exit code $rc"
        tail -n 5 "$work/out" "$work/err" | sed 's/^/# /'
        bad=1
    fi
}

least=() largest=()
while read -r name low high; do
    case $low in -) continue ;; self,ucx) [ -n "$ucx" ] || low=self,shm ;; esac # the tests' own value stays
    try "$name=$low" "$name=$low"
    [ "$low" = "$high" ] || try "$name=$high" "$name=$high"
    # Together.
    least+=("$name=$low") largest+=("$name=$high")
done <<<"$variables"
try "all at their least" "${least[@]}" RANK_CHANNELS=self,shm
try "all at their largest" "${largest[@]}"
[ -z "$ucx" ] || try "all at their largest, over tcp" "${largest[@]}" RANK_CHANNELS=self,ucx UCX_TLS=tcp,self
exit $bad
