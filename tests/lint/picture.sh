# SPDX-License-Identifier: BSD-3-Clause
# picture.sh: compare picture and lists of doc/architecture.md with source.
# doc/architecture.py makes doc/architecture.svg and the lists.
command -v python3 >/dev/null || { echo "ok - the picture is current # SKIP no python3"; exit 77; }
bad=0
work=$(mktemp -d "$top_builddir/tests/picture.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

python3 "$top_srcdir/doc/architecture.py" "$top_srcdir" "$work" || bad=1
for file in architecture.svg architecture.md; do
    if cmp -s "$work/$file" "$top_srcdir/doc/$file"; then
        echo "ok - doc/$file is current"
    else
        echo "not ok - doc/$file is current: run 'make update-doc'"
        bad=1
    fi
done

# The files that a room's text names are in that room.
cd "$top_srcdir" || exit 1
awk '/^### `/ { split($0, part, "`"); room = part[2]; if (room == "lib/rank.h") room = "lib" }
     /^- Files:/ { n = split($0, part, "`"); for (i = 2; i <= n; i += 2) if (part[i] !~ /^-/) print room, part[i] }' \
    doc/architecture.md | while read -r room file; do
    [ -n "$(find "$room" -path "*/${file%/}")" ] ||
        echo "not ok - doc/architecture.md names $file in $room"
done | grep . && bad=1
lines=$(wc -l <doc/architecture.md)
[ "$lines" -le 360 ] && echo "ok - architecture.md has at most 360 lines" ||
    { echo "not ok - architecture.md has at most 360 lines ($lines)"; bad=1; }
exit $bad
