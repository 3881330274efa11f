#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ucx_two_links.sh: run jobs over two links between two hosts.
# Large messages take the link that UCX_NET_DEVICES names, or both where UCX can (1.22, UCX_MAX_EAGER_RAILS=2).
. "$(dirname "$0")/../inside.sh"
inside 2 "two links between hosts"
. "$top_srcdir/tests/env.sh"
work=$(mktemp -d "$top_builddir/links-test.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$work" || exit 1
passed=0 failed=0 slow=1
[ -z "${SAN_CFLAGS:-}" ] || slow=4
good() { passed=$((passed + 1)); echo "ok - $1"; }
bad() { failed=$((failed + 1)); echo "not ok - $1: $2"; sed 's/^/# /' out; }
stream=$top_builddir/tests/ucx/ucx_stream

"$hosts" second hosta && "$hosts" second hostb || exit 1
if ! on hosta env LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" RANK_MODULES="$top_builddir/.libs" "$top_builddir/rankinfo" --load >info 2>&1; then
    cat info
    exit 1
fi
case $(cat info) in
*'not found'* | *'cannot be loaded'*)
    echo "ok - two links between hosts # SKIP there is no ucx"
    exit 77
    ;;
esac

# Both devices, in any order.
if grep -q 'rails .*tcp/eth0' info && grep -q 'rails .*tcp/eth1' info; then
    good "rankinfo --load names both rails"
else
    cp info out
    bad "rankinfo --load names both rails" "it does not"
fi

# run LIMIT NAME=VALUE... -- ARGS: the stream, with out and rc
run() {
    local limit=$(($1 * slow)) x=()
    shift
    while [ "$1" != -- ]; do x+=(-x "$1"); shift; done
    shift
    [ -z "${LD_LIBRARY_PATH:-}" ] || x+=(-x "LD_LIBRARY_PATH=$LD_LIBRARY_PATH")
    on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR=/run "$XRUN" -q -n 2 --host hosta:1,hostb:1 "${x[@]}" "$stream" "$@" >out 2>&1 </dev/null
    rc=$?
}
# MiB that have left hosta by a device
sent() { echo $(($(on hosta cat "/sys/class/net/$1/statistics/tx_bytes") >> 20)); }

# carries NAME MIN0 MIN1 VARIABLES...: 6 messages, 96 MiB; at least so many of them by eth0 and eth1
carries() {
    local name=$1 least0=$2 least1=$3 a b
    shift 3
    a=$(sent eth0) b=$(sent eth1)
    run 40 "$@" -- 6
    a=$(($(sent eth0) - a)) b=$(($(sent eth1) - b))
    if [ $rc -ne 0 ]; then bad "$name" "exit code $rc"
    elif [ $a -lt "$least0" ] || [ $b -lt "$least1" ]; then bad "$name" "$a MiB by eth0, $b by eth1"
    else good "$name"; fi
}
carries "the first link" 96 0 UCX_NET_DEVICES=eth0
carries "the second link" 0 96 UCX_NET_DEVICES=eth1
if grep -q 'UCX 1\.1[0-9]' info; then
    echo "ok - both links # SKIP this UCX sends messages over tcp by one link"
else
    carries "both links" 30 30 UCX_MAX_EAGER_RAILS=2
fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
