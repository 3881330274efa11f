#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh: run each fuzz target for a while on its seeds, two at a time.
# FUZZ_SECONDS (10) bounds each.
#
# A new input that finds a fault is left in the build folder, and its name is printed; add it to the
# corpus with the fix.

seconds=${FUZZ_SECONDS:-10}
failed=0 ran=0
work=$(mktemp -d "$top_builddir/tests/fuzz/run.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 1' INT TERM HUP

# fuzz TARGET NAME: it has done well if there is a file NAME.well then
fuzz() {
    "$1" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$top_builddir/tests/fuzz/found-$2-" \
        "$work/$2" "$top_srcdir/tests/fuzz/$2.corpus" >"$work/$2.log" 2>&1 && : >"$work/$2.well"
}

names=
for target in "$top_builddir"/tests/fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    case $target in *.o) continue ;; esac
    name=$(basename "$target")
    name=${name#fuzz_}
    names="$names $name"
    mkdir "$work/$name"
    fuzz "$target" "$name" &
    ran=$((ran + 1))
    [ $((ran % 2)) = 1 ] || wait # two at a time
done
wait
for name in $names; do
    if [ -e "$work/$name.well" ]; then
        echo "ok - fuzz $name ($(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log") inputs)"
    else
        echo "not ok - fuzz $name"
        tail -n 40 "$work/$name.log" | bash "$top_srcdir/tests/symbols.sh" | sed 's/^/# /'
        failed=1
    fi
done
if [ $ran = 0 ]; then
    echo "ok - fuzz # SKIP no target was built (configure --enable-fuzz CC=clang)"
    exit 77
fi
exit $failed
