# SPDX-License-Identifier: BSD-3-Clause
# go.sh: build bindings/go for an installed librank, run its tests and commands.
# No network is used.
bad=0
work=$(mktemp -d "$top_builddir/tests/go.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL LD_LIBRARY_PATH

skip() { echo "ok - Go # SKIP $1"; exit 77; }

# judge RC WHAT: with the end of the log if it failed
judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        tail -n 60 "$work/log" | sed 's/^/    /'
        bad=1
    fi
}

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

cp -r "$top_srcdir/bindings/go" "$work/source" && chmod -R u+w "$work/source" && cd "$work/source" || exit 1
unformatted=$(gofmt -l .)
echo "$unformatted" >"$work/log"
[ -z "$unformatted" ]
judge $? "gofmt"
go vet ./... >"$work/log" 2>&1
judge $? "go vet"
go build -o "$work/bin/" ./cmd/... >"$work/log" 2>&1
judge $? "go build"
[ $bad = 0 ] || exit 1

# Run the tests, with the words of "$@" before go.
go_tests() {
    timeout -k 5 200 env "$@" >"$work/log" 2>&1
    rc=$?
    sed -n 's/^--- PASS: \([^ ]*\).*/ok - \1/p' "$work/log"
    judge $rc "$*"
}
if echo 'int main(void) { return 0; }' | gcc -fsanitize=thread -x c -o /dev/null - 2>/dev/null; then
    go_tests go test -race -count=1 -timeout 180s -v .
fi
checks=GODEBUG=cgocheck=2
printf '%s\n' go1.21 "$go_version" | sort -VC && checks=GOEXPERIMENT=cgocheck2
go_tests "$checks" GO_RANK_TEST_TCP=1 go test -count=1 -timeout 180s -v .

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
! copy "$work/source" "$work/secret" "$work/secret" && grep -q 'is no regular file' "$work/log"
judge $? "rankcp of a folder"

timeout -k 5 60 "$work/bin/rankperf" -listen 127.0.0.1:0 >"$work/server" 2>&1 &
pid=$!
address=$(address_of rankperf "$work/server")
timeout -k 5 50 "$work/bin/rankperf" -e 65536 -time 2ms -connect "$address" >"$work/log" 2>&1 &&
    wait $pid && [ "$(grep -c '^ [0-9].* 0$' "$work/log")" = 84 ] # six tables of 14 sizes without damage
judge $? "rankperf"
exit $bad
