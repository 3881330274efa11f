# SPDX-License-Identifier: BSD-3-Clause
# messages.sh: check that each message of the launcher is sent and handled.
# The row of a message names the files that handle it. The compiler checks that numbers are unique: overlay/protocol.c has a
# switch of them.
bad=0
launcher=$top_srcdir/launcher

# The rows as "NAME FILE FILE...": the last string of a row names the files.
sed -n '/^#define XR_MESSAGES/,/^ *$/p' "$launcher/overlay/protocol.h" | tr -d '\\\n' | sed 's/ X(/\n&/g' |
    sed -n 's/^ X(\([A-Z_]*\), [0-9]*, [A-Z]*,.*"\([^"]*\)") *\(\/\*.*\)\{0,1\}$/\1 \2/p' >"$top_builddir/tests/lint/messages.rows"
rows=0
while read -r name files || [ -n "$name" ]; do
    rows=$((rows + 1))
    [ -n "$files" ] || { echo "not ok - XR_MSG_$name names no file that handles it"; bad=1; }
    for file in $files; do
        grep -qw "XR_MSG_$name" "$launcher/$file" || { echo "not ok - $file does not handle XR_MSG_$name"; bad=1; }
    done
    others=$(grep -rlw "XR_MSG_$name" "$launcher" --include='*.c' | wc -l)
    [ "$others" -gt 0 ] || { echo "not ok - XR_MSG_$name is never sent"; bad=1; }
done <"$top_builddir/tests/lint/messages.rows"
rm -f "$top_builddir/tests/lint/messages.rows"
[ $rows -gt 40 ] || { echo "not ok - only $rows rows were found"; bad=1; }
[ $bad = 0 ] && echo "ok - $rows messages are handled where the table says"
exit $bad
