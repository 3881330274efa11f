#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# summary.sh BUILDDIR: add up what "make check" ran there.
#
# Prints which ten tests took longest, where the file system keeps the time when a file was made, and then one line,
# "N passed, N failed". Exits 0 only if something ran and nothing failed.
# With BUDGET=1 it names each test that takes more than twice its seconds of budget.txt (60 without a line there) in a line
# "slow:". On a slow machine, by which the median of all is above its budget, so much more is allowed.
# A test that prints "ok" and "not ok" lines counts with each of them, another one as one.

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: summary.sh BUILDDIR" >&2
    exit 2
fi

# A test's log is made as it begins, and its .trs written as it ends.
budget=/dev/null
[ -z "${BUDGET:-}" ] || budget=$(dirname "$0")/budget.txt
find "$1" -name '*.trs' -not -path '*/_install/*' -print | while IFS= read -r trs; do
    began=$(stat -c %W "${trs%.trs}.log" 2>/dev/null) ended=$(stat -c %Y "$trs")
    [ "${began:-0}" -le 0 ] || [ "$ended" -lt "$began" ] || echo "$((ended - began)) ${trs#"${1%/}"/}"
done | LC_ALL=C sort -k 1,1nr -k 2 | awk -v budget="$budget" '
BEGIN { while ((getline line < budget) > 0) if (line !~ /^#/ && split(line, f, " ") == 2) may[f[1]] = f[2] }
{
    all += $1
    sub(/^tests\//, "", $2)
    sub(/\.trs$/, "", $2)
    if (NR <= 10)
        line10 = line10 (NR > 1 ? ", " : "") $2 " " $1
    name[NR] = $2
    took[NR] = $1
    if ($2 in may) { # in order of time: the median is that of the ratios, so sort them below
        ratio[++n] = $1 / may[$2]
    }
}
END {
    if (NR)
        print "slowest of " all " s: " line10
    for (i = 2; i <= n; i++) {
        x = ratio[i]
        for (j = i - 1; j > 0 && ratio[j] > x; j--)
            ratio[j + 1] = ratio[j]
        ratio[j + 1] = x
    }
    slow = n >= 20 && ratio[int((n + 1) / 2)] > 1 ? ratio[int((n + 1) / 2)] : 1
    for (i = 1; n >= 20 && i <= NR; i++) {
        most = 2 * slow * (name[i] in may ? may[name[i]] : 60)
        if (took[i] > most)
            printf "slow: %s took %d s, more than %d s (tests/budget.txt)\n", name[i], took[i], most
    }
}'

find "$1" -name '*.trs' -not -path '*/_install/*' -print | LC_ALL=C sort | awk '
function count_log(log_file, result,    line, good, bad, skip) {
    good = bad = skip = 0
    while ((getline line < log_file) > 0) {
        if (line ~ /^(not )?ok( [0-9]+)? *# *[Ss][Kk][Ii][Pp]/ || line ~ /^ok .*# *[Ss][Kk][Ii][Pp]/)
            skip++
        else if (line ~ /^ok( |$)/)
            good++
        else if (line ~ /^not ok( |$)/)
            bad++
    }
    close(log_file)
    if (result == "SKIP") {
        skipped++
        return
    }
    if (result == "PASS" || result == "XFAIL") {
        # A test that prints "not ok" and exits with 0 has failed.
        passed += (good + bad + skip) ? good : 1
        failed += bad
        if (bad)
            where = where " " name "(exit code 0)"
    } else {
        passed += good
        failed += bad ? bad : 1
        where = where " " name
    }
    skipped += skip
}
{
    trs = $0
    result = "NONE"
    while ((getline line < trs) > 0)
        if (line ~ /^:global-test-result:/) {
            sub(/^:global-test-result: */, "", line)
            result = line
        } else if (line ~ /^:test-result:/ && result == "NONE") {
            sub(/^:test-result: */, "", line)
            result = line
        }
    close(trs)
    name = trs
    sub(/\.trs$/, "", name)
    count_log(name ".log", result)
}
END {
    printf "%d passed, %d failed", passed, failed
    if (skipped)
        printf " (%d skipped)", skipped
    print ""
    if (where != "")
        print "failed:" where > "/dev/stderr"
    exit failed > 0 || passed == 0
}'
