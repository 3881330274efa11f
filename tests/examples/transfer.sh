# SPDX-License-Identifier: BSD-3-Clause
# transfer.sh: run the two sides of examples/transfer, with and without a secret.
work=$(mktemp -d "$top_builddir/tests/transfer.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# sides NAME EXPECTED: run both sides. Port 0 is any; the listener prints it.
sides()
{
    rm -f "$work/out"
    timeout 60 "$top_builddir/examples/transfer" listen 127.0.0.1:0 >"$work/out" 2>"$work/err" &
    listener=$!
    for _ in $(seq 300); do
        address=$(sed -n 's/^listening on //p' "$work/out" 2>/dev/null)
        [ -n "$address" ] && break
        sleep 0.1
    done
    timeout 60 "$top_builddir/examples/transfer" connect "$address" 64 >"$work/client" 2>>"$work/err"
    rc=$?
    wait $listener
    if [ "$rc $?" = "0 0" ] && grep -q "^64 blocks are the same$" "$work/client" && grep -q "$2" "$work/out"; then
        echo "ok - transfer, $1"
    else
        echo "not ok - transfer, $1"
        sed 's/^/    /' "$work/out" "$work/client" "$work/err"
        bad=1
    fi
}

sides "no secret" "transfer wrote 64 blocks, the last one begins with 63; the secret is not used$"
if ldconfig -p 2>/dev/null | grep -q libsodium; then
    (umask 077 && echo "a secret of some length" >"$work/secret")
    export RANK_SECRET_FILE="$work/secret"
    sides "a secret" "the secret is proved$"
fi
exit $bad
