# SPDX-License-Identifier: BSD-3-Clause
# go.sh: test bindings/go and examples/go with an installed librank.
# No network is used. The path of the folder does not change: go builds anew what is in another one.
bad=0
work=$top_builddir/tests/go-work
rm -rf "$work" && mkdir "$work" || exit 1
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL LD_LIBRARY_PATH

skip() { echo "ok - Go # SKIP $1"; exit 77; }

. "$top_srcdir/tests/judge.sh"

[ -z "${SAN_CFLAGS:-}" ] || skip "a sanitizer must be linked with the program"
command -v go >/dev/null || skip "no go (golang-go)"
go_version=$(go env GOVERSION)
printf '%s\n' go1.19 "$go_version" | sort -VC || skip "$go_version is older than go1.19"
command -v pkg-config >/dev/null || skip "no pkg-config"

make -C "$top_builddir" install DESTDIR="$work/dest" >"$work/log" 2>&1
judge $? "make install DESTDIR=..."
[ $bad = 0 ] || exit 1
here=$work/dest$(sed -n "s/^prefix='\(.*\)'/\1/p" "$top_builddir/lib/xcc")
printf '#!/bin/sh\nexec pkg-config --define-variable=prefix=%s "$@"\n' "$here" >"$work/pkg-config"
chmod +x "$work/pkg-config" # cgo takes no arguments in PKG_CONFIG
export PKG_CONFIG_PATH=$here/lib/pkgconfig PKG_CONFIG=$work/pkg-config RANK_MODULES=$here/lib/librank
export GOPROXY=off GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=local GOCACHE=$top_builddir/tests/go-cache
export CGO_CFLAGS="-O2 -g -Werror" CGO_LDFLAGS=-Wl,-rpath,$here/lib
unset CC # configure's may have words that go does not take

cp -r "$top_srcdir/bindings/go" "$work/source" && cp -r "$top_srcdir/examples/go" "$work/source/examples" &&
    rm -f "$work/source/examples/go.mod" && chmod -R u+w "$work/source" && cd "$work/source" || exit 1
unformatted=$(gofmt -l .)
echo "$unformatted" >"$work/log"
[ -z "$unformatted" ]
judge $? "gofmt"
go vet ./... >"$work/log" 2>&1
judge $? "go vet"
checks=GODEBUG=cgocheck=2
printf '%s\n' go1.21 "$go_version" | sort -VC && checks=GOEXPERIMENT=cgocheck2
go build -o "$work/bin/" ./cmd/... ./examples/... >"$work/log" 2>&1 && env $checks go test -vet=off -c -o "$work/bin/plain.test" . >>"$work/log" 2>&1
judge $? "go build"
[ $bad = 0 ] || exit 1

# Run the tests by a program, with the words of "$@" before it.
go_tests() {
    timeout -k 5 200 env "$@" -test.timeout 180s -test.v >"$work/log" 2>&1
    rc=$?
    sed -n 's/^--- PASS: \([^ ]*\).*/ok - \1/p' "$work/log"
    judge $rc "${*##*/}"
}

# Run a program of world_test.go by xrun, and count its lines of success.
# world NAME PROGRAM LINES XRUN-OPTION...
world() {
    local name=$1 program=$2 lines=$3
    shift 3
    GO_RANK_TEST=$name timeout -k 5 120 "$top_builddir/xrun" "$@" --timeout 100 env $checks "$work/bin/$program" >"$work/log" 2>&1
    rc=$?
    [ "$(grep -c '^ok ' "$work/log")" = "$lines" ] && { [ $rc = 0 ] || [ "$name" = dead ]; }
    judge $? "ranks: $name, $program, $*"
}
go_tests "$checks" GO_RANK_TEST_TCP=1 "$work/bin/plain.test"
for n in 1 2 3; do
    world world plain.test $n -n $n
done
world dead plain.test 2 --on-failure continue -n 3
GO_RANK_TEST=hang timeout -k 5 60 "$top_builddir/xrun" --heartbeat 1:kill -n 3 "$work/bin/plain.test" >"$work/log" 2>&1
grep -q 'rank 0: no progress for .*: receive of 8 bytes on world, tag 7, waits for rank 1$' "$work/log" &&
    grep -q 'rank 1: no progress for .*: probe on world, tag 7, waits for rank 2$' "$work/log" &&
    grep -q 'rank 2: no progress for .*: receive of 8 bytes on world, tag 7, waits for rank 0$' "$work/log" &&
    grep -q 'cycle: 0 -> 1 -> 2 -> 0$' "$work/log"
judge $? "a hang is explained"
timeout -k 5 60 "$top_builddir/xrun" -n 3 "$work/bin/ring" >"$work/log" 2>&1 && grep -q 'sum of 3 ranks' "$work/log"
judge $? "example ring"
if echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o /dev/null - 2>/dev/null; then
    go test -vet=off -race -c -o "$work/bin/race.test" . >"$work/log" 2>&1
    judge $? "go test -race -c"
    go_tests "$work/bin/race.test"
    world world race.test 2 -n 2
fi

# Print the address that a program has printed into FILE, behind its NAME.
# address_of NAME FILE
address_of() {
    for _ in $(seq 200); do
        sed -n "s/^[# ]*$1: listening on //p" "$2" | grep . && break
        sleep 0.05
    done
}

# A file from process to process. The receiver prints its address.
# copy FILE SECRET-OF-RECEIVER SECRET-OF-SENDER
copy() {
    local rc=0 address pid
    rm -f "$work/out" "$work/out.part"
    RANK_SECRET_FILE=$2 timeout -k 5 60 "$work/bin/rankcp" -listen 127.0.0.1:0 -out "$work/out" 2>"$work/receiver" &
    pid=$!
    address=$(address_of rankcp "$work/receiver")
    RANK_SECRET_FILE=$3 timeout -k 5 60 "$work/bin/rankcp" "$1" "$address" >"$work/log" 2>&1 || rc=$?
    [ $rc = 0 ] || kill $pid
    wait $pid || rc=1
    cat "$work/receiver" >>"$work/log"
    return $rc
}
umask 077
echo "a secret of the tests" >"$work/secret"
echo "another secret of them" >"$work/other"
head -c 20000001 /dev/urandom >"$work/in"
copy "$work/in" "$work/secret" "$work/secret" && cmp "$work/in" "$work/out" >>"$work/log" && grep -q 'are the same' "$work/log"
judge $? "rankcp of 20 MB"
: >"$work/empty"
copy "$work/empty" "$work/secret" "$work/secret" && cmp "$work/empty" "$work/out" >>"$work/log"
judge $? "rankcp of an empty file"
! copy "$work/in" "$work/secret" "$work/other" && grep -q 'RANK_SECRET_FILE' "$work/log" && [ ! -e "$work/out" ]
judge $? "rankcp with another secret"
! copy "$work/source" "$work/secret" "$work/secret" && grep -q 'is not a regular file' "$work/log"
judge $? "rankcp of a folder"

timeout -k 5 60 "$work/bin/rankperf" -listen 127.0.0.1:0 >"$work/server" 2>&1 &
pid=$!
address=$(address_of rankperf "$work/server")
timeout -k 5 50 "$work/bin/rankperf" -e 64K -time 2ms -connect "$address" >"$work/log" 2>&1 &&
    wait $pid && [ "$(grep -c '^ [0-9].* 0$' "$work/log")" = 84 ] # six tables of 14 sizes without damage
judge $? "rankperf"
exit $bad
