# SPDX-License-Identifier: BSD-3-Clause
# man.sh: check that manual pages are current and well formed.
bad=0
work=$(mktemp -d "$top_builddir/tests/man.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

if ! sh "$top_srcdir/doc/update.sh" "$top_srcdir" "$top_builddir/rankinfo" "$work"; then
    echo "not ok - doc/update.sh runs"
    exit 1
fi
for page in $({ ls "$work"; cd "$top_srcdir/doc" && ls rank*.3; } | sort -u); do
    if cmp -s "$work/$page" "$top_srcdir/doc/$page"; then
        echo "ok - $page is what doc/update.sh makes"
    else
        echo "not ok - $page is old: run 'make update-doc'"
        diff "$top_srcdir/doc/$page" "$work/$page" | sed 's/^/    /'
        bad=1
    fi
done

# A sentence that rank3.awk has cut in two has halves in two sections.
printf '.SH DESCRIPTION\nIt has no stop\n.PP\nand is small.\n' >"$work/sample.3"
if awk -f "$top_srcdir/tests/lint/torn.awk" "$work"/rank*.3 >"$work/torn" && [ ! -s "$work/torn" ] &&
    [ "$(awk -f "$top_srcdir/tests/lint/torn.awk" "$work/sample.3" | wc -l)" = 2 ]; then
    echo "ok - each paragraph of section 3 is made of sentences"
else
    echo "not ok - each paragraph of section 3 is made of sentences"
    sed 's/^/    /' "$work/torn"
    bad=1
fi

# "Not there" names nothing that is there.
lacks=$(sed -n '/^### Not there/,/^## /p' "$top_srcdir/doc/from-mpi.md" | grep '^- ' | sed 's/`[^`]*`//g' | grep -oE '[a-z_]+' | sort -u)
there=$(echo "${lacks:-send}" |
    while read -r word; do ! grep -qE "^RANK_API .*\brank_$word\(" "$top_srcdir"/lib/rank/*.h || echo "$word"; done)
if [ -z "$there" ]; then
    echo "ok - doc/from-mpi.md: what is not there, is not in rank.h"
else
    echo "not ok - doc/from-mpi.md: what is not there, is not in rank.h: $there"
    bad=1
fi

# What is not in the Makefile is neither installed nor packed.
for file in $(cd "$top_srcdir" && ls doc/rank*.3 doc/examples/*.c); do
    if ! tr -s ' \t\\' '\n' <"$top_srcdir/doc/Makefile.inc" | grep -qxF "$file"; then
        echo "not ok - doc/Makefile.inc lists $file"
        bad=1
    fi
done

if ! command -v groff >/dev/null; then
    echo "ok - manual pages without warnings # SKIP no groff"
    exit $bad
fi
found=0
cd "$top_srcdir" || exit 1
for page in $(find doc launcher bench lib -name '*.[13]'); do
    found=$((found + 1))
    groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null |
        grep -v 'cannot break line\|cannot adjust line' >"$work/warnings"
    if [ -s "$work/warnings" ]; then
        echo "not ok - $(basename "$page") has warnings"
        sed 's/^/    /' "$work/warnings"
        bad=1
    else
        echo "ok - $(basename "$page") has no warnings"
    fi
done
[ $found -ge 2 ] || { echo "not ok - no manual pages found"; bad=1; }
exit $bad
