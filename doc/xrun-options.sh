#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# xrun-options.sh: replace the options of xrun.1 by those of "XRUN --help=man".
#
#   doc/xrun-options.sh XRUN XRUN.1
#
# "make update-doc" calls it; tests/launcher/xrun.sh compares the two.
set -eu
"$1" --help=man >"$2.options"
awk -v options="$2.options" '
    /^\.\\" end of xrun --help=man/ { inside = 0 }
    !inside { print }
    /^\.\\" xrun --help=man/ {
        inside = 1
        while ((getline line <options) > 0)
            print line
    }' "$2" >"$2.new"
mv "$2.new" "$2"
rm -f "$2.options"
