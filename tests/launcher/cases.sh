# SPDX-License-Identifier: BSD-3-Clause
# cases.sh: run xrun under a time limit, check output, exit code and leftovers.
# Scripts of this folder source it first. It makes a folder to work in and changes to it.

# Under nohup SIGHUP is ignored, in a script's background SIGINT; then xrun ignores them as well, and a shell
# cannot change that. But they are tested here.
if [ -z "${RK_SIGNALS:-}" ] && trap | grep -q "'' "; then
    RK_SIGNALS=1 exec env --default-signal=HUP,INT,QUIT bash "$0" "$@"
fi

top_srcdir=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
top_builddir=${top_builddir:-$PWD}
export top_srcdir top_builddir
. "$top_srcdir/tests/env.sh"

work=$(mktemp -d "$top_builddir/xrun-test.XXXXXX") || exit 1
mkdir "$work/tmp"
mkfifo "$work/.idle" || exit 1 # has no writer: a read from it waits
export TMPDIR=$work/tmp XDG_RUNTIME_DIR=$work/tmp # the sockets for --status too: none may be left
cd "$work" || exit 1
passed=0 failed=0
slow=1
[ -z "${SAN_CFLAGS:-}" ] || slow=4

trap '[ $BASHPID != $$ ] || { kill_all; cd /; rm -rf "$work"; }' EXIT
trap 'exit 1' INT TERM HUP

# Every process of a case is recognized by a word in its environment.
new_case() { tag=$$.$RANDOM$RANDOM; export RK_XRUN_CASE=$tag; }
of_case() { grep -lszF "RK_XRUN_CASE=$tag" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | grep -vx -e $$ -e "$BASHPID"; }
# But for this script and its subshells.
alive() {
    local p
    for p in $(of_case); do
        case $(what "$p") in
        '' | *"${0##*/}"*) ;;
        *) echo "$p" ;;
        esac
    done
}
what() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline"; } 2>/dev/null
kill_all() {
    local p
    [ -n "${tag:-}" ] || return
    for p in $(alive); do kill -9 "$p" 2>/dev/null; done
}

# How long a case took, all that led to it included.
case_began=${EPOCHREALTIME/./}
good() {
    passed=$((passed + 1))
    echo "ok - $1 ($(((${EPOCHREALTIME/./} - case_began) / 1000)) ms)"
    case_began=${EPOCHREALTIME/./}
}
bad() {
    failed=$((failed + 1))
    echo "not ok - $1: $2"
    head -c 2000 err 2>/dev/null | bash "$top_srcdir/tests/symbols.sh" | sed 's/^/# err: /'
    case_began=${EPOCHREALTIME/./}
}

# run LIMIT ARGS...: xrun, with out, err, rc and ms set.
run() {
    local limit=$(($1 * slow)) t0 t1
    shift
    new_case
    t0=${EPOCHREALTIME/./}
    timeout -k 5 "$limit" "$XRUN" "$@" >out 2>err </dev/null
    rc=$?
    t1=${EPOCHREALTIME/./}
    ms=$(((t1 - t0) / 1000))
    [ $rc != 124 ] || [ $ms -lt $((limit * 1000)) ] || rc=hung
}

# Wait for a condition; it is an upper limit, not a pause.
until_true() { # seconds command...
    local end=$((${EPOCHREALTIME/./} + $1 * slow * 1000000))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME/./}" -lt $end ] || return 1
        # No process is started for it: of the thousands that waits would start, bash now and then awaits one that had
        # another's number before it.
        read -rt 0.01 <>"$work/.idle"
    done
    return 0
}
nothing_left() { [ -z "$(alive)" ] && [ -z "$(ls -A "$work/tmp")" ]; }
clean() { # NAME: nothing is left after a case
    if ! until_true 2 nothing_left; then
        bad "$1" "left behind: $(for p in $(alive); do what "$p"; echo -n "($p) "; done) $(ls -A "$work/tmp")"
        kill_all
        rm -rf "$work/tmp"; mkdir "$work/tmp"
        return 1
    fi
}

# aborted: a job that ends by "stall abort" has ended just now; ms: the time since its victim printed that
aborted() {
    local end=${EPOCHREALTIME/./} at
    at=$(sed -n 's/^aborts //p' out)
    ms=$(((end - ${at:-0}) / 1000))
}

# check NAME CODE [pattern of err]: after run
check() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say '$3'"
    elif clean "$1"; then
        good "$1"
    fi
}

# refused NAME CODE PATTERN ARGS...: one line, no rank started
refused() {
    local name=$1 code=$2 pattern=$3
    shift 3
    rm -f started
    run 10 "$@"
    if [ "$(grep -c . err)" != 1 ]; then
        bad "$name" "not one line on stderr"
    elif [ -s out ] || [ -e started ]; then
        bad "$name" "something was started"
    else
        check "$name" "$code" "$pattern"
    fi
}
same() { # NAME WANTED
    if [ "$(cat out)" = "$2" ]; then check "$1" 0; else bad "$1" "got '$(head -c 200 out)', not '$2'"; fi
}

begin() { # ARGS: xrun in the background; its ranks have begun when "ready" was printed N times
    new_case
    : >out # the output of the case before is no answer
    : >err
    set -m # a background job without it would ignore INT
    "$XRUN" "$@" >out 2>err </dev/null &
    xpid=$!
    set +m
}
ready() { [ "$(grep -c ready out)" -ge "$1" ]; }
ended() { # a zombie has ended too: bash may wait for it only later
    local state
    read -r _ _ state _ 2>/dev/null <"/proc/$xpid/stat" || return 0
    [ "$state" = Z ]
} 2>/dev/null
reap() { # LIMIT in s
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; kill_all; wait "$xpid"; fi
}
