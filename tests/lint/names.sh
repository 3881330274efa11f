# SPDX-License-Identifier: BSD-3-Clause
# names.sh: check names of files and static functions.
cd "$top_srcdir" || exit 1
bad=0
ours="lib collectives launcher tools bench examples tests"

# check WHAT: fail if stdin is not empty
shopt -s lastpipe
check() {
    local found
    found=$(cat)
    if [ -z "$found" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$found" | sed 's/^/    /'
        bad=1
    fi
}

# A header and its source share a name, in one folder. The parts of rank.h are known as rank/NAME.h.
find $ours -name '*.[ch]' | grep -v '^lib/rank/' | sed 's|\.[ch]$||' | LC_ALL=C sort -u | sed 's|.*/||' | LC_ALL=C sort | uniq -d |
    check "no two sources have the same name"

# "static TYPE name(": the definition or its declaration, in sources only.
statics() {
    find lib collectives launcher tools bench -name '*.c' | LC_ALL=C sort |
        xargs grep -oE '^static [a-z_][a-zA-Z0-9_ *()]*[ *)][a-z_0-9]+\(' /dev/null |
        sed -nE 's/^([^:]*):static .*[ *)]([a-z_0-9]+)\($/\2 \1/p' | LC_ALL=C sort -u
}
# A name needs a noun, not its file's prefix: it may recur in another folder.
statics | awk '{ dir = $2; sub(/\/[^\/]*$/, "", dir); print $1, dir, $2 }' | LC_ALL=C sort |
    awk '$1 " " $2 == name { print $1 ": " file ", " $3 } { name = $1 " " $2; file = $3 }' |
    check "each static function's name is in one source of a folder only"
statics | cut -d ' ' -f 1 | LC_ALL=C uniq -d | grep -v _ |
    check "no static function's name that recurs is a single word"

libc=$(ldconfig -p 2>/dev/null | sed -n 's/.*[ \t]\(\/.*\/libc\.so\.6\)$/\1/p' | head -n 1)
if [ -n "$libc" ]; then
    statics | cut -d ' ' -f 1 | LC_ALL=C comm -12 - <(nm -D --defined-only "$libc" | awk '{ print $3 }' | sed 's/@.*//' | LC_ALL=C sort -u) |
        check "no static function has a name of the C library"
else
    echo "ok - no static function has a name of the C library # SKIP no libc.so.6"
fi
exit $bad
