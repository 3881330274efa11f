# SPDX-License-Identifier: BSD-3-Clause
# examples.sh: check the output of the examples at several sizes, and bad files.
data=$top_srcdir/examples/data
matrix=$data/1138_bus.mtx
bin=$top_builddir/examples
work=$(mktemp -d "$top_builddir/tests/examples.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
export XRUN_QUIET=on # that ranks outnumber cores is no news here
bad=0

ok() { echo "ok - $*"; }

not_ok() {
    echo "not ok - $*"
    sed 's/^/    out: /' "$work/out"
    sed 's/^/    err: /' "$work/err"
    bad=1
}

# run SECONDS PROGRAM ...: leaves out, err and rc
run() {
    timeout -k 5 "$@" >"$work/out" 2>"$work/err" </dev/null
    rc=$?
}

# field NAME: the number behind it in cg's report
field() { sed -n "s/^  $1  *\([0-9.e+-]*\).*/\1/p" "$work/out"; }

# between LOW X HIGH
between() { awk -v a="$1" -v x="$2" -v b="$3" 'BEGIN { exit !(x != "" && a <= x + 0 && x + 0 <= b) }'; }

# -------------------------------------------------------------------------------------- hello, ring
for n in 1 4; do
    run 60 "$XRUN" -n $n "$bin/hello"
    if [ $rc = 0 ] && [ "$(sort -u "$work/out" | grep -c "^hello from rank [0-9]* of $n on ")" = $n ] &&
        [ "$(wc -l <"$work/out")" = $n ]; then
        ok "hello, $n ranks"
    else
        not_ok "hello, $n ranks: exit code $rc"
    fi
    run 60 "$XRUN" -n $n "$bin/ring" 50
    token=$((50 * n * (n - 1) / 2))
    if [ $rc = 0 ] && grep -q "^50 laps round $n ranks: token $token (right)" "$work/out"; then
        ok "ring, $n ranks"
    else
        not_ok "ring, $n ranks: exit code $rc"
    fi
done

# ---------------------------------------------------------------------------------------- one-sided
# one_sided N CHANNELS PROGRAM ARGS TEXT: prints that line once, and nothing else.
one_sided() {
    run 60 env RANK_CHANNELS="$2" "$XRUN" -n "$1" "$bin/$3" $4
    if [ $rc = 0 ] && [ "$(grep -c "$5" "$work/out")" = 1 ] && [ "$(wc -l <"$work/out")" = 1 ] &&
        [ ! -s "$work/err" ]; then
        ok "$3, $1 ranks, $2"
    else
        not_ok "$3, $1 ranks, $2: exit code $rc"
    fi
}

# An allreduce in a stream of a stand-in for the CUDA driver, which has no sanitizer's addresses.
standin=$top_builddir/tests/standin/.libs
case "${SAN_CFLAGS:-}" in *sanitize*) standin= ;; esac
if [ -n "$standin" ] && [ -e "$standin/libcuda.so.1" ]; then
    for words in "2 1 4096 20" "3 2 40000 5" "1 1 1 1000"; do
        read -r n gpus args <<<"$words"
        # shellcheck disable=SC2086
        run 60 env LD_LIBRARY_PATH="$standin" STANDIN_GPUS=$gpus RANK_CUDA=on "$XRUN" -n $n "$bin/stream_allreduce" $args
        if [ $rc = 0 ] && [ "$(grep -c "^$n ranks, ${args#* } allreduces of ${args% *} floats: right$" "$work/out")" = 1 ] &&
            [ "$(grep -c ' us a step$' "$work/out")" = 2 ] && [ ! -s "$work/err" ]; then
            ok "stream_allreduce $args, $n ranks, $gpus devices of a stand-in"
        else
            not_ok "stream_allreduce $args, $n ranks, $gpus devices of a stand-in: exit code $rc"
        fi
    done
    run 60 env LD_LIBRARY_PATH="$standin" STANDIN_GPUS=0 "$XRUN" -n 2 "$bin/stream_allreduce"
    [ $rc = 1 ] && grep -q 'stream_allreduce: the CUDA driver finds no device' "$work/err" && ok "stream_allreduce without a device" ||
        not_ok "stream_allreduce without a device: exit code $rc"
fi

channels=default
grep -q '^#define HAVE_UCX 1' "$top_builddir/config.h" && channels="default ucx,self"
for c in $channels; do
    [ "$c" = default ] && c=shm,self
    for n in 1 2 4; do
        one_sided $n "$c" account 100 "^$n ranks, 100 rounds each: the balance is $((100 * n * (n + 1) / 2)) (right)"
        one_sided $n "$c" primes 50000 "^5133 primes below 50000, in 50 blocks by $n ranks"
        one_sided $n "$c" gups "10 2" "all undone (right)"
    done
done
# dies_with_lock RANK WHAT SECONDS: judge the last run, in which that rank of three died with the lock: both others
# reported it, after a call that took no longer.
dies_with_lock() {
    if [ "$(awk -v most="$3" '/^rank [0-2]: the lock is broken after/ && $(NF - 1) <= most' "$work/out" | wc -l)" = 2 ] && [ $rc = 137 ]; then
        ok "account, rank $1 dies with the lock$2"
    else
        not_ok "account, rank $1 dies with the lock$2: exit code $rc, $(grep -h '^rank' "$work/out" "$work/err" | tr '\n' ';')"
    fi
}

node=1
grep -q fsanitize "$top_builddir/Makefile" && node=4
for c in $channels; do
    tls=
    [ "$c" = ucx,self ] && tls='env UCX_TLS=tcp,self'
    [ "$c" = default ] && c=shm,self
    for dies in 0 1 2; do
        RANK_CHANNELS=$c run 30 $tls "$XRUN" -n 3 --on-failure continue "$bin/account" 400 --die $dies
        dies_with_lock $dies " on $c" $node
    done
done

# ----------------------------------------------------------------------------------------------- cg
# check_cg WHAT: judge the last run against the serial reference, 995 iterations and error 8.2e-10.
check_cg() {
    if [ $rc = 0 ] && between 987 "$(field iterations)" 1003 && between 0 "$(field residual)" 1e-10 &&
        between 1e-11 "$(field 'true error')" 5e-9 && [ ! -s "$work/err" ]; then
        ok "cg, $1: $(field iterations) iterations, error $(field 'true error')"
    else
        not_ok "cg, $1: exit code $rc"
    fi
}

run 60 "$bin/cg" "$matrix"
check_cg "alone"
for n in 1 2 3 4 8; do
    run 120 "$XRUN" -n $n "$bin/cg" "$matrix"
    check_cg "$n ranks"
done

# The same bits each time at one size.
run 120 "$XRUN" -n 4 "$bin/cg" "$matrix"
first=$(field iterations)/$(field residual)/$(field 'true error')
run 120 "$XRUN" -n 4 "$bin/cg" "$matrix"
if [ "$first" = "$(field iterations)/$(field residual)/$(field 'true error')" ]; then
    ok "cg, twice the same result"
else
    not_ok "cg, first $first, then another result"
fi

# More ranks than rows: some own nothing.
printf '%s\n' '%%MatrixMarket matrix coordinate real symmetric' '3 3 5' '1 1 2' '2 1 -1' '2 2 2' \
    '3 2 -1' '3 3 2' >"$work/small.mtx"
run 60 "$XRUN" -n 5 "$bin/cg" "$work/small.mtx"
if [ $rc = 0 ] && between 1 "$(field iterations)" 3 && between 0 "$(field 'true error')" 1e-12; then
    ok "cg, 5 ranks for 3 rows"
else
    not_ok "cg, 5 ranks for 3 rows: exit code $rc"
fi

# ------------------------------------------------------------------------------------- what is wrong
# refuse CODE MESSAGE WHAT ARGUMENT...: cg on 3 ranks prints the message once, and nothing on stdout.
refuse() {
    local code=$1 message=$2 what=$3
    shift 3
    run 60 "$XRUN" -n 3 "$bin/cg" "$@"
    if [ $rc = "$code" ] && [ "$(grep -cF -- "$message" "$work/err")" = 1 ] && [ ! -s "$work/out" ] &&
        [ "$(grep -c '^cg: \|^usage: ' "$work/err")" = 1 ]; then
        ok "cg refuses $what"
    else
        not_ok "cg on $what: exit code $rc, expected $code and once: $message"
    fi
}

head -n 100 "$matrix" >"$work/short.mtx"
sed '50s/.*/9999 7 1.0/' "$matrix" >"$work/range.mtx"
sed '1s/symmetric/general/' "$matrix" >"$work/general.mtx"
printf '%s\n' '%%MatrixMarket matrix coordinate real symmetric' '2 2 3' '1 1 1' '2 1 3' '2 2 2' \
    >"$work/indefinite.mtx"
refuse 1 "cg: $work/none.mtx: cannot open: No such file or directory" "a missing file" "$work/none.mtx"
refuse 1 "cg: $work/short.mtx:100: the file ends after 86 of 2596 entries" "a truncated file" \
    "$work/short.mtx"
refuse 1 "cg: $work/range.mtx:50: row 9999 is out of range" "an index out of range" "$work/range.mtx"
refuse 1 "cg: $work/general.mtx:16: the matrix is not symmetric" "a matrix that is not symmetric" \
    "$work/general.mtx"
refuse 1 "cg: $data/README.md:1: expected '%%MatrixMarket" "another kind of file" "$data/README.md"
refuse 2 "usage: cg" "no file" --tolerance 1e-8
refuse 2 "usage: cg" "an unknown option" --tolerence 1e-8 "$matrix"

# These are noticed after the matrix was described on stdout.
for args in "$work/indefinite.mtx|is not positive definite" "--max-iterations 5 $matrix|no convergence"; do
    run 60 "$XRUN" -n 2 "$bin/cg" ${args%|*}
    if [ $rc = 1 ] && [ "$(grep -c "^cg: .*${args#*|}" "$work/err")" = 1 ]; then
        ok "cg: ${args#*|}"
    else
        not_ok "cg ${args%|*}: exit code $rc"
    fi
done
exit $bad
