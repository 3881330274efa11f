# SPDX-License-Identifier: BSD-3-Clause
# man_examples.sh: compile and run the examples of the manual, compare output.
work=$(mktemp -d "$top_builddir/tests/man_examples.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export XRUN_QUIET=on # more ranks than cores are expected here
bad=0
found=0

for source in "$top_srcdir"/doc/examples/*.c; do
    name=$(basename "$source" .c)
    found=$((found + 1))
    if ! ${CC:-cc} ${SAN_CFLAGS:-} -std=gnu11 -Wall -Wextra -Werror -I"$top_srcdir/lib" "$source" -o "$work/$name" \
        -L"$top_builddir/.libs" -Wl,-rpath,"$(cd "$top_builddir" && pwd)/.libs" -lrank >"$work/err" 2>&1; then
        echo "not ok - $name compiles without warnings"
        sed 's/^/    /' "$work/err"
        bad=1
        continue
    fi
    ranks=$(sed -n "s|^ \* Run: xrun -n \([0-9]*\) ./$name\$|\1|p" "$source")
    sed -n 's/^ \* Prints: //p' "$source" | sort >"$work/expected"
    timeout -k 5 60 "$XRUN" -n "$ranks" "$work/$name" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    sort "$work/out" >"$work/sorted"
    if [ $rc = 0 ] && [ -s "$work/expected" ] && cmp -s "$work/expected" "$work/sorted"; then
        echo "ok - $name prints what its head promises"
    else
        echo "not ok - $name: exit code $rc"
        diff "$work/expected" "$work/sorted" | sed 's/^/    /'
        sed 's/^/    err: /' "$work/err"
        bad=1
    fi
done
[ $found -ge 10 ] || { echo "not ok - only $found examples found"; bad=1; }
exit $bad
