# SPDX-License-Identifier: BSD-3-Clause
# examples_hosts.sh: kill the holder of the lock of examples/ on two hosts.
# tests/hosts.sh makes the hosts. The ranks of both hosts get the death within ten seconds.
. "$(dirname "$0")/../inside.sh"
inside 2 "the lock of the examples on two hosts"
. "$top_srcdir/tests/env.sh"
work=$(mktemp -d "$top_builddir/tests/examples.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# Rank 0 keeps the queue's tail and the balance; the others of its host map them, those of hostb send requests.
for dies in 0 1 3; do
    on hosta timeout -k 5 60 env XDG_RUNTIME_DIR=/run "$XRUN" -q -n 4 --host hosta:2,hostb:2 --on-failure continue \
        "$top_builddir/examples/account" 100 --die $dies >"$work/out" 2>"$work/err" </dev/null
    rc=$?
    told=$(awk '/^rank [0-3]: the lock is broken after/ && $(NF - 1) <= 10' "$work/out" | wc -l)
    if [ $rc = 137 ] && [ "$told" = 3 ]; then
        echo "ok - account on two hosts, rank $dies dies with the lock"
    else
        echo "not ok - account on two hosts, rank $dies dies with the lock: exit code $rc, $told of 3 were told in time"
        sed 's/^/# /' "$work/out" "$work/err"
        bad=1
    fi
done
exit $bad
