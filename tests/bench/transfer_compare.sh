# SPDX-License-Identifier: BSD-3-Clause
# transfer_compare.sh: run bench/compare/transfer.py without peers.
# Each case of ours has a figure and right data, on one host and between two. Figures are not judged.
work=$(mktemp -d "$top_builddir/tests/transfer.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0
compare=$top_srcdir/bench/compare/transfer.py

command -v python3 >/dev/null || { echo "ok - transfer # SKIP no python3"; exit 77; }
mkdir -p "$work/bench/compare" "$work/bench/limits"
cp "$top_builddir/config.h" "$work"
for program in rankbench bench/compare/conn_peer bench/limits/tcp; do
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$top_builddir/$program" >"$work/$program"
    chmod +x "$work/$program"
done

judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        sed 's/^/    /' "$work/out" "$work/err"
        bad=1
    fi
}

# compares FIGURES WORDS...: so many figures at least, none lost
compares() {
    local figures=$1
    shift
    timeout 300 python3 "$compare" "$work" --runs 1 --time 0.01 --raw "$@" >"$work/out" 2>"$work/err" </dev/null &&
        [ "$(grep -cE '^# raw [a-z-]+ [^ ]+ [0-9.e+-]*[1-9]' "$work/out")" -ge "$figures" ] && ! grep -q '^# raw .* -$' "$work/out"
    judge $? "transfer.py $*"
}
compares 21 --sources c,c-alloc,c-tcp
grep -qE '^\| 1265 memories: [^|]*\| c \| [0-9.]+ m?s \|' "$work/out"
judge $? "a row without a peer"
timeout 300 python3 "$compare" "$work" --runs 1 --time 0.01 --rows 'first byte' >"$work/out" 2>"$work/err" </dev/null &&
    grep -q '^# nixl: missing; bench/peers.sh --transfer ' "$work/out"
judge $? "a line names a missing peer"
if why=$("$top_srcdir/tests/hosts.sh" able); then
    compares 14 --hosts --sources c,rankbench,socket
else
    echo "ok - two hosts # SKIP $why"
fi

# refused TEXT WORDS...
refused() {
    local text=$1
    shift
    ! timeout 60 python3 "$compare" "$@" >"$work/out" 2>"$work/err" </dev/null && grep -qF -e "$text" "$work/err"
    judge $? "$*: $text"
}
mkdir "$work/empty"
refused "is not a build folder" "$work/empty"
refused "--runs 0: at least 1" "$work" --runs 0
refused "no row matches nothing" "$work" --rows nothing
exit $bad
