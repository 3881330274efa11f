# SPDX-License-Identifier: BSD-3-Clause
# limits.sh: run every program of bench/limits and check its data.
work=$(mktemp -d "$top_builddir/tests/limits.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# expect COUNT OPTIONS...: a head, and so many lines, each with a name of its own, a value above 0, a unit and rows of bench/compare.py
expect() {
    local count=$1
    shift
    timeout 120 "$top_srcdir/bench/limits/run_limits.sh" --quick "$@" "$top_builddir" >"$work/out" 2>"$work/err"
    case $? in
    0) ;;
    *) if grep -q 'needs two cores' "$work/err"; then echo "ok - limits # SKIP one core"; exit 0; fi
       bad=1 ;;
    esac
    sed 1d "$work/out" | awk '$4 != "-" { print $4 }' | tr , '\n' | sort -u >"$work/rows"
    if [ $bad = 0 ] && [ -s "$work/rows" ] && head -n 1 "$work/out" | grep -q '^limit  *figure unit  *bounds' && sed -i 1d "$work/out" &&
        ! grep -vxFf <(sed -n "s/^ *Row('\([a-z0-9]*\)'.*/\1/p" "$top_srcdir/bench/compare.py") "$work/rows" &&
        [ "$(awk '$2 > 0 && $3 ~ /^(ns|us|ms|GB\/s|M\/s)$/ { print $1 }' "$work/out" | sort -u | wc -l)" = "$count" ] &&
        [ "$(wc -l <"$work/out")" = "$count" ]; then
        echo "ok - limits $*"
    else
        echo "not ok - limits $*"
        sed 's/^/    /' "$work/out" "$work/err"
        bad=1
    fi
}
expect 49
if "$top_srcdir/tests/hosts.sh" able >"$work/why"; then
    expect 53 --hosts
else
    echo "ok - limits --hosts # SKIP $(cat "$work/why")"
fi
exit $bad
