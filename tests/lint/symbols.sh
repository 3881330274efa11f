# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh: check that objects of the library use symbols of lower rooms only.
#
# A circle is a set of files that use each other's symbols. doc/architecture.md names each circle inside a room.
what="no room uses a symbol of a higher one"
[ -n "$(find "$top_builddir/lib" "$top_builddir/collectives" -name '*.o' 2>/dev/null)" ] || { echo "ok - $what # SKIP no objects in $top_builddir"; exit 77; }
bad=0
work=$(mktemp -d "$top_builddir/tests/symbols.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

# Print "U SOURCE SYMBOL" for each use, "D SOURCE SYMBOL" for each definition, "M" for one in a module.
# Modules define some symbols of librank again. Objects without a source are of an older tree.
(cd "$top_srcdir" && find lib collectives -name '*.c') >"$work/sources"
(cd "$top_builddir" && find lib collectives -name '*.o' -exec nm -A -P {} +) | awk '
    NR == FNR { exists[$1] = 1; next }
    {
        source = $1
        module = source ~ /librank_[a-z0-9]+_la-/
        sub(/\.o:$/, ".c", source)
        sub(/\.libs\//, "", source)
        sub(/[^\/]*_la-/, "", source)
        if ((source in exists) && ($3 == "U" || $3 ~ /^[A-Zu]$/))
            print ($3 == "U" ? "U" : module ? "M" : "D"), source, $2
    }' "$work/sources" - | LC_ALL=C sort -u >"$work/symbols"
[ "$(grep -c ^D "$work/symbols")" -gt 300 ] || { echo "not ok - nm finds too few symbols in $top_builddir"; exit 1; }

# Print lines "up ..." for each upward use, and "circle ROOM: FILES" for each circle.
arrows() {
    awk '
    FILENAME ~ /rooms.txt$/ {
        if ($0 ~ /^#/ || NF == 0)
            next
        room[$1] = 1
        for (i = 2; i <= NF; i++)
            below[$1] = below[$1] " " $i
        next
    }
    function room_of(path,    p) {
        for (p = path; p != "" && !(p in room); )
            if (!sub(/\/[^\/]*$/, "", p))
                return ""
        return p
    }
    function base_of(path) { sub(/.*\//, "", path); return path }
    $1 == "D" || ($1 == "M" && !($3 in owner)) { owner[$3] = $2 }
    $1 != "U" { file[$2] = room_of($2); next }
    { used[$2, $3] = 1; file[$2] = room_of($2) }
    function visit(f,    n, i, part) {
        n = split(next_of[f], part, " ")
        for (i = 1; i <= n; i++)
            if (!((start, part[i]) in reach)) {
                reach[start, part[i]] = 1
                visit(part[i])
            }
    }
    END {
        for (r in room) {
            n = split(below[r], part, " ")
            for (i = 1; i <= n; i++)
                may[r, room_of(part[i])] = 1
        }
        for (u in used) {
            split(u, part, SUBSEP)
            f = part[1]
            to = owner[part[2]]
            if (to == "" || to == f)
                continue
            if (file[to] == file[f])
                edge[f, to] = 1
            else if (!((file[f], file[to]) in may))
                print "up " f " uses " part[2] " of " to
        }
        for (e in edge) {
            split(e, part, SUBSEP)
            next_of[part[1]] = next_of[part[1]] " " part[2]
        }
        for (start in file)
            visit(start)
        for (start in file)
            if ((start, start) in reach)
                for (f in file)
                    if (((start, f) in reach) && ((f, start) in reach))
                        print "member " start " " file[f] " " base_of(f)
    }' "$1" "$2" | LC_ALL=C sort >"$work/found"
    grep '^up ' "$work/found"
    awk '$1 == "member" { if (!($2 in room)) room[$2] = $3; set[$2] = set[$2] " " $4 }
         END { for (f in set) print "circle " room[f] ":" set[f] }' "$work/found" | LC_ALL=C sort -u
}

# judge WHAT: fail if stdin is not empty
shopt -s lastpipe
judge() {
    local lines
    lines=$(cat)
    if [ -z "$lines" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$lines" | sed 's/^/    /'
        bad=1
    fi
}

# A sample with an upward use and a circle.
printf 'lib/a\nlib/b lib/a\n' >"$work/rooms.txt"
printf '%s\n' "D lib/a/x.c fx" "D lib/a/y.c fy" "D lib/a/z.c fz" "D lib/b/w.c fw" \
    "U lib/a/x.c fy" "U lib/a/y.c fx" "U lib/a/z.c fx" "U lib/a/z.c fw" "U lib/b/w.c fx" >"$work/sample"
arrows "$work/rooms.txt" "$work/sample" >"$work/judged"
printf '%s\n' "up lib/a/z.c uses fw of lib/b/w.c" "circle lib/a: x.c y.c" | diff - "$work/judged" |
    judge "each fault of a sample is found"

# symbols.txt: FILE SYMBOL REASON.
arrows "$top_srcdir/tests/lint/rooms.txt" "$work/symbols" >"$work/judged"
awk 'FILENAME ~ /symbols.txt$/ { if ($0 !~ /^#/ && NF > 2) excused[$1, $2] = 1; next }
     $1 == "up" && !(($2, $4) in excused) { print $2 ": " $4 " is of " $6 }
     $1 == "up" { delete excused[$2, $4] }
     END { for (e in excused) { split(e, part, SUBSEP); print "symbols.txt: needed no more: " part[1] " " part[2] } }
    ' "$top_srcdir/tests/lint/symbols.txt" "$work/judged" | judge "$what"

# "- Circles: `a.c` `b.c`; `c.c` `d.c`." in the text of a room. One without objects (the module) is not compared.
awk -v symbols="$work/symbols" '
    BEGIN { while ((getline line <symbols) > 0) { split(line, part, " "); sub(/.*\//, "", part[2]); built[part[2]] = 1 } }
    /^### `/ { split($0, part, "`"); room = part[2] }
    /^- Circles:/ {
        n = split($0, circle, ";")
        for (i = 1; i <= n; i++) {
            gsub(/^[^`]*`|`[^`]*$/, "", circle[i])
            gsub(/`[^`]*`/, " ", circle[i])
            split(circle[i], part, " ")
            if (part[1] in built)
                print "circle " room ": " circle[i]
        }
    }' "$top_srcdir/doc/architecture.md" | LC_ALL=C sort >"$work/named"
circles="doc/architecture.md names each circle between files of a room, sorted"
if grep -q '^U [^ ]* __[at]san_' "$work/symbols"; then
    echo "ok - $circles # SKIP a sanitizer changes what is inline"
else
    grep '^circle ' "$work/judged" | LC_ALL=C sort | diff "$work/named" - |
        sed -n 's/^< /not there now: /p; s/^> /not named: /p' | judge "$circles"
fi
exit $bad
