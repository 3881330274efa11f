#!/bin/sh
# update.sh: make anew what in doc/ comes from other files.
#
#   doc/update.sh SRCDIR RANKINFO OUTDIR
#
# rank.3 comes from lib/rank.h; the part of rankinfo.1 between its two marks comes from "rankinfo --man".
# tests/lint/man.sh calls it too, to see whether what is checked in is current.
set -eu

src=$1 rankinfo=$2 out=$3

awk -f "$src/doc/rank3.awk" "$src/lib/rank.h" "$src/lib/rank.h" >"$out/rank.3.new"
mv "$out/rank.3.new" "$out/rank.3"

"$rankinfo" --man >"$out/conf.new"
awk -v conf="$out/conf.new" '
    /^\.\\" end of rankinfo --man/ { inside = 0 }
    !inside { print }
    /^\.\\" rankinfo --man/ {
        inside = 1
        while ((getline line < conf) > 0)
            print line
    }' "$src/doc/rankinfo.1" >"$out/rankinfo.1.new"
rm "$out/conf.new"
mv "$out/rankinfo.1.new" "$out/rankinfo.1"
