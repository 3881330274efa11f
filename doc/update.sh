#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# update.sh: make the parts of doc/ that come from other files.
#
#   doc/update.sh SRCDIR RANKINFO OUTDIR
#
# The pages of section 3 and rank3.links come from lib/rank.h, lib/rank/*.h and doc/examples. The part of rankinfo.1 between its two
# marks comes from "rankinfo --man". tests/lint/man.sh calls this script too, and compares.
set -eu

src=$1 rankinfo=$2 out=$3

new=$out/update.new
rm -rf "$new"
mkdir "$new"
trap 'rm -rf "$new"' EXIT
sed -n "s|^#include \"\(.*\)\"|$src/lib/\1|p" "$src/lib/rank.h" |
    xargs awk -v out="$new" -v examples="$src/doc/examples" -f "$src/doc/rank3.awk" "$src/lib/rank.h"
mv "$new"/* "$out"

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
