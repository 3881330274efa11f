#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# long_name.sh: start PMIx clients on hosts with names of the greatest length.
. "$(dirname "$0")/cases.sh"

# named NAME: an xrun on this host, which calls itself so
named() {
    new_case
    unshare -u sh -c 'hostname "$1" && shift && exec "$@"' sh "$1" timeout -k 5 $((30 * slow)) \
        "$XRUN" -q --bind none -n 2 "$top_builddir/tests/launcher/programs/resolve_client" 2 >out 2>err </dev/null
    rc=$?
}
if ! unshare -u true 2>/dev/null; then
    echo "ok - long names # SKIP this host's name cannot be changed"
    exit 77
fi
letters=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk
for name in "$letters" "${letters:0:57}" "${letters:0:50}" "${letters:0:49}12" "n${letters//?/7}" "node12345678901.cluster"; do
    name=${name:0:63}
    named "$name"
    same "a host named $name" "ok
ok
ok
ok"
done

echo "# long_name: $passed passed, $failed failed"
[ "$failed" = 0 ]
