# SPDX-License-Identifier: BSD-3-Clause
# compare.sh: run bench/compare.py with a peer, Debian's MPICH or Open MPI.
# The peer's programs are started by its own launcher, or by ours. The test checks that there are figures and which launcher started
# what; it does not judge the figures.
work=$(mktemp -d "$top_builddir/tests/compare.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

skip() { echo "ok - compare # SKIP $1"; exit 77; }
peer=
command -v mpicc.openmpi >/dev/null && peer=ompi4
command -v mpicc.mpich >/dev/null && peer=mpich4
[ -n "$peer" ] || skip "no compiler of Debian's MPICH or Open MPI"
command -v python3 >/dev/null || skip "no python3"

# A build folder with the programs that it needs, and an xrun that notes its arguments.
mkdir "$work/bench"
cp "$top_builddir/config.h" "$work"
for program in rankbench bench/initfin; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$top_builddir/$program" >"$work/$program"
done
printf '#!/bin/sh\necho "$*" >>"%s"\nexec "%s" "$@"\n' "$work/asked" "$XRUN" >"$work/xrun"
chmod +x "$work/xrun" "$work/rankbench" "$work/bench/initfin"
PEERS_CFLAGS=-O0 "$top_srcdir/bench/peers.sh" --only $peer "$work" >"$work/out" 2>"$work/err" || {
    echo "not ok - peers.sh --only $peer"
    sed 's/^/    /' "$work/out" "$work/err"
    exit 1
}

# compares NAME WORDS...: each row has a figure of ours and of the peer's, and none was lost
compares() {
    local name=$1
    shift
    : >"$work/asked"
    timeout 300 "$top_srcdir/bench/compare.py" "$work" --runs 1 --time 1ms --md --rows ar2,true2,init2 "$@" >"$work/out" 2>"$work/err"
    local rc=$?
    if [ $rc = 0 ] && [ ! -s "$work/err" ] &&
        [ "$(awk -F ' *[|] *' '$3 + 0 > 0 && $4 ~ /^[0-9.e+-]+ \([0-9.e+-]+\)$/' "$work/out" | wc -l)" = 3 ]; then
        echo "ok - $name"
    else
        echo "not ok - $name (exit code $rc)"
        sed 's/^/    /' "$work/out" "$work/err" "$work/asked"
        bad=1
    fi
}
# started COUNT PATTERN: so many jobs of that kind were ours to start
started() {
    if [ "$(grep -cE -e "$2" "$work/asked")" = "$1" ]; then
        echo "ok - $1 jobs were started with $2"
    else
        echo "not ok - not $1 jobs were started with $2"
        sed 's/^/    /' "$work/asked"
        bad=1
    fi
}
compares "compare --launcher xrun, $peer" --launcher xrun
started 1 "^-n 2 .*/peers/mpibench[.]$peer allreduce "
started 1 "^-n 2 .*/peers/initfin[.]$peer"
started 2 "^-n 2 true"
started 6 .
compares "compare, $peer"
started 0 "/peers/"
started 3 .

# refused TEXT WORDS...
refused() {
    local text=$1
    shift
    if timeout 60 "$top_srcdir/bench/compare.py" "$@" >"$work/out" 2>"$work/err" </dev/null || ! grep -qF -e "$text" "$work/err"; then
        echo "not ok - $*: $text"
        sed 's/^/    /' "$work/out" "$work/err"
        bad=1
    else
        echo "ok - $*: $text"
    fi
}
mkdir "$work/empty"
refused "run bench/peers.sh" "$work/empty"
refused "no peer is named none; there are $peer" "$work" --peers none
refused "--runs 0: at least 1" "$work" --runs 0
refused "no row is named nothing" "$work" --rows nothing
"$top_srcdir/bench/compare.py" "$work/empty" --list | grep -q '^lat8 ' && echo "ok - the rows, without peers" || {
    echo "not ok - the rows, without peers"
    bad=1
}

# What is being measured ends with it, and does not go on until its time is over.
printf '#!/bin/sh\n[ "$XRUN_RANK" = 0 ] || exit 0\nsleep 1000 &\necho $! >"%s/pid.new" && mv "%s/pid.new" "%s/pid"\nwait\n' "$work" "$work" "$work" >"$work/rankbench"
"$top_srcdir/bench/compare.py" "$work" --rows lat8 --runs 1 --limit 1000 >"$work/out" 2>"$work/err" &
comparing=$!
while [ ! -s "$work/pid" ] && kill -0 $comparing 2>/dev/null; do sleep 0.05; done
kill -TERM $comparing
wait $comparing
rc=$?
for _ in $(seq 600); do
    kill -0 "$(cat "$work/pid")" 2>/dev/null || break
    sleep 0.05
done
if [ $rc = 143 ] && [ -s "$work/pid" ] && ! kill -0 "$(cat "$work/pid")" 2>/dev/null; then
    echo "ok - what is measured ends with compare"
else
    echo "not ok - what is measured ends with compare (exit code $rc)"
    sed 's/^/    /' "$work/out" "$work/err"
    kill "$(cat "$work/pid")" 2>/dev/null
    bad=1
fi
exit $bad
