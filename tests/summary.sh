#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# summary.sh BUILDDIR: add up what "make check" ran there.
#
# Prints which ten tests took longest, where the file system keeps the time when a file was made, and then one line,
# "N passed, N failed". Exits 0 only if something ran and nothing failed.
# A test that prints "ok" and "not ok" lines counts with each of them, another one as one.

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: summary.sh BUILDDIR" >&2
    exit 2
fi

# A test's log is made as it begins, and its .trs written as it ends.
find "$1" -name '*.trs' -not -path '*/_install/*' -print | while IFS= read -r trs; do
    began=$(stat -c %W "${trs%.trs}.log" 2>/dev/null) ended=$(stat -c %Y "$trs")
    [ "${began:-0}" -le 0 ] || [ "$ended" -lt "$began" ] || echo "$((ended - began)) ${trs#"${1%/}"/}"
done | LC_ALL=C sort -k 1,1nr -k 2 | awk '
{ all += $1 }
NR <= 10 { sub(/^tests\//, "", $2); sub(/\.trs$/, "", $2); line = line (NR > 1 ? ", " : "") $2 " " $1 }
END { if (NR) print "slowest of " all " s: " line }'

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
