#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mp.sh: run a program at several sizes, on each channel; check what it leaves.
#
#   mp.sh PROGRAM                   as the lines of the file "cases" beside the program's source say: "NAME: ..." is a run,
#                                   "*: ..." has options of every line below it, "NAME*: ..." of each of NAME's
#   mp.sh [options] -- PROGRAM ...  as the options say; these are also what a line of "cases" holds,
#                                   before the arguments: "name: -q 2,4 -t 30 -- --rounds 9"
#
#   -q LIST   numbers of ranks in a quick run, comma separated; "alone" is without xrun; "-": none
#   -f LIST   the same with FULL=1 (1,2,3,4,7,8,16)
#   -c LIST   channel settings: default, ucx (RANK_CHANNELS=ucx,self), tcp (RANK_CHANNELS=tcp,self;
#             with TCP_BY_UCX=1 it is UCX's tcp); quick runs take ucx and tcp with the last number of ranks only
#   -m N      ucx and tcp with N ranks at most
#   -F        in full runs only
#   -1        only where all ranks share a host
#   -t S      seconds that a run may take (60); a hung one shows its stacks where gdb is installed
#   -k N      ranks that will not reach their end (0); "n": all; "any": no matter how many
#   -e CODE   the exit code that xrun shall have (0); "any" for whatever
#   -o TEXT   an extended regular expression that the output shall match; repeatable
#   -O TEXT   one that it must not match; repeatable
#   -x OPTS   further options for xrun
#   -E V=X    environment of the run; repeatable
#   -u KB     a limit on the address space of each rank, as ulimit -v
#   -w PROG   a program (and arguments) in front of the ranks' program, such as valgrind
#
# A run passes if the exit code is right, all ranks but N have said "mp: done" (mp_end() does), the
# output is as asked, no sanitizer spoke, and nothing is left: no process, no file in /dev/shm, /tmp or
# TMPDIR. Each run prints one line, "ok - ..." or "not ok - ...".
#
# Environment: those of env.sh, and RANKS and CHANNELS in place of the lists above. CASES, an extended regular expression:
# only those lines of "cases" in which it is found. LARGEST=1: of each line's numbers of ranks the last. TURN=N: with FULL=1,
# the sizes and channels of a quick run and a sixth of the others, which rotates with N.
# LONG_TURN=N: every other one of a line's, under a sanitizer every third, in turn. LAUNCHER: one of those in
# elsewhere/launchers.sh, in place of xrun: then exit codes need only be bad where a bad one is due, a hung run is
# run once more, and what a case tells xrun, or runs alone, is left out.

here=$(cd "$(dirname "$0")" && pwd)
top_srcdir=${top_srcdir:-$(dirname "$here")}
top_builddir=${top_builddir:-$PWD}
export top_srcdir top_builddir
. "$top_srcdir/tests/env.sh"
if [ -n "${LAUNCHER:-}" ]; then
    . "$top_srcdir/tests/elsewhere/launchers.sh"
    if ! why=$(launcher_able); then
        echo "ok - $LAUNCHER # SKIP $why"
        exit 77
    fi
fi

passed=0 failed=0 skipped=0 triple=0 lines=0
case_id=none
work=
again=

say_usage() { sed -n '3,/^$/s/^# \{0,1\}//p' "$0"; }

# The processes of the run, found by a word in their environment, so that other runs on this machine
# do not matter.
ours() { grep -lszF "RK_TEST_CASE=$case_id" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3; }

kill_ours() {
    local p
    for p in $(ours); do kill -9 "$p" 2>/dev/null; done
}

cleanup() {
    [ "$case_id" = none ] || kill_ours
    [ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# Names in the places where programs leave things. Other programs' files come and go there.
droppings() { find /dev/shm /tmp -maxdepth 1 -user "$(id -un)" 2>/dev/null |
    grep -E '(rank|xrun|pmix|prte|ompi|ucx|rk_|memfd)' | grep -vE '^/tmp/(bash|b-|xrun-[0-9]*$)' | LC_ALL=C sort; }

in_use() { # does a living process have the file open or mapped?
    find /proc/[0-9]*/fd /proc/[0-9]*/map_files -lname "$1*" 2>/dev/null | grep -q .
}

# Wait until nothing is left; give what stays after two seconds.
leftovers() {
    local i p f new
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        p=$(ours)
        new=
        for f in $(comm -13 "$work/before" <(droppings)); do
            # What is in use is another run's, if nothing of this one lives.
            [ ! -e "$f" ] || { [ -z "$p" ] && in_use "$f"; } || new="$new $f"
        done
        [ -z "$p$new" ] && break
        sleep 0.1
    done
    for i in $p; do
        echo "process left: $i $(tr '\0' ' ' <"/proc/$i/cmdline" 2>/dev/null)"
    done
    for f in $new; do
        [ -e "$f" ] && ! in_use "$f" && echo "file left: $f"
    done
    # With all of xrun's processes killed at once, the next xrun removes the job's socket.
    case $args in *--target\ both* | *--target\ all*) XDG_RUNTIME_DIR=$work/tmp "$XRUN" --status >"$work/status" ;; esac
    find "$work/tmp" -mindepth 1 -printf 'left in TMPDIR: %P\n' 2>/dev/null |
        grep -vE "${launcher_leaves:-^$}"
}

stacks() {
    local p
    command -v gdb >/dev/null || return
    for p in $(ours | head -n 12); do
        echo "--- stacks of $p: $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null)"
        timeout 20 gdb -p "$p" -batch -nx -ex 'thread apply all bt 14' 2>/dev/null |
            grep -E '^(Thread|#)'
    done
}

# The head and the tail of what was written.
show() {
    local lines
    lines=$(wc -l <"$work/$1")
    if [ "$lines" -le $(($2 + $3)) ]; then
        sed "s/^/# $1: /" "$work/$1"
    else
        head -n "$2" "$work/$1" | sed "s/^/# $1: /"
        echo "# $1: ... $((lines - $2 - $3)) lines ..."
        tail -n "$3" "$work/$1" | sed "s/^/# $1: /"
    fi
}

# right_exit CODE: is it as the case wants it?
right_exit() {
    [ "$expect" != any ] || return 0
    # Other launchers have codes of their own for bad ends.
    [ -z "${LAUNCHER:-}" ] || [ "$expect" = 0 ] || { [ "$1" != 0 ]; return; }
    [ "$1" = "$expect" ]
}

# run_one RANKS CHANNEL
run_one() {
    local n=$1 channel=$2 t0 t1 rc word why= hung= full_env cmd label done_lines want
    label="$name n=$n $channel${args:+ $args}"
    full_env=("${extra_env[@]}")
    if [ "$channel" = tcp ] && [ -n "${TCP_BY_UCX:-}" ]; then
        full_env+=(RANK_CHANNELS=ucx,self UCX_TLS=tcp,self)
    elif [ "$channel" != default ]; then
        full_env+=("RANK_CHANNELS=$channel,self")
    fi
    if [ "$n" = alone ]; then
        cmd=("${wrap[@]}" "$program" "${prog_args[@]}")
    elif [ -n "${LAUNCHER:-}" ]; then
        label="$LAUNCHER $label"
        launcher_command "$n"
        cmd=("${launch[@]}" "${wrap[@]}" "$program" "${prog_args[@]}")
    else
        cmd=("$XRUN" -n "$n" "${for_ranks[@]}" "${xrun_opts[@]}" "${wrap[@]}" "$program" "${prog_args[@]}")
    fi
    work=$(mktemp -d "$top_builddir/tests/run.XXXXXX") || exit 1
    mkdir "$work/tmp"
    mkfifo "$work/ended"
    exec 9<>"$work/ended"
    case_id=$$.$RANDOM.$SECONDS.$n
    droppings >"$work/before"
    t0=${EPOCHREALTIME/./}
    (
        ulimit -c 0
        [ -z "$as_limit" ] || ulimit -v "$as_limit"
        env TMPDIR="$work/tmp" XDG_RUNTIME_DIR="$work/tmp" "RK_TEST_CASE=$case_id" "${full_env[@]}" "${cmd[@]}" \
            >"$work/out" 2>"$work/err" </dev/null 9>&-
        echo $? >&9
    ) &
    if ! read -r -t "$limit" -u 9 rc; then
        hung=yes
        stacks >"$work/stacks"
        kill_ours
        read -r -t 10 -u 9 rc || rc=none
        why="no end after $limit s"
    fi
    wait 2>/dev/null # what bash says of killed jobs is no news
    exec 9>&-
    t1=${EPOCHREALTIME/./}
    if [ -z "$hung" ]; then
        right_exit "$rc" || why="exit code $rc, not $expect"
        [ "$n" != alone ] || n=1
        done_lines=$(grep -c 'mp: done$' "$work/out")
        want=$done_lines
        [ "$victims" = any ] || want=$((n - victims)) # victims may be an expression of n
        [ "$done_lines" = $want ] || why="$why; $done_lines ranks came to their end, not $want"
        for word in "${must[@]}"; do
            grep -qE -e "$word" "$work/out" "$work/err" || why="$why; nothing said '$word'"
        done
        for word in "${must_not[@]}"; do
            ! grep -qE -e "$word" "$work/out" "$work/err" || why="$why; something said '$word'"
        done
    fi
    if grep -qE 'Sanitizer|runtime error:' "$work/err"; then
        why="$why; a sanitizer spoke"
        bash "$top_srcdir/tests/symbols.sh" <"$work/err" >"$work/said" && mv "$work/said" "$work/err"
    fi
    leftovers >"$work/left"
    [ ! -s "$work/left" ] || why="$why; something is left"
    if [ -n "$hung" ] && [ -n "${LAUNCHER:-}" ] && [ -z "$again" ]; then
        # Other launchers are not free of this; a fault of ours comes again.
        echo "# $label: $why; once more"
        [ ! -s "$work/stacks" ] || sed 's/^/# /' "$work/stacks"
        kill_ours
        case_id=none
        rm -rf "$work"
        work=
        again=yes
        run_one "$1" "$channel"
        again=
        return
    fi
    if [ -z "$why" ]; then
        passed=$((passed + 1))
        echo "ok - $label ($(((t1 - t0) / 1000)) ms)"
    else
        failed=$((failed + 1))
        echo "not ok - $label: ${why#; }"
        echo "# again: ${full_env[*]} RANK_MODULES=$RANK_MODULES ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH=$LD_LIBRARY_PATH} ${cmd[*]}"
        show out 30 20
        show err 50 30
        [ ! -s "$work/left" ] || sed 's/^/# /' "$work/left"
        [ ! -s "$work/stacks" ] || sed 's/^/# /' "$work/stacks"
        kill_ours
    fi
    case_id=none
    rm -rf "$work"
    work=
}

# due RANKS CHANNEL: is it this size's and channel's turn?
due() {
    triple=$((triple + 1))
    [ -n "${TURN:-}" ] && [ -n "${FULL:-}" ] && [ -z "${RANKS:-}" ] || return 0
    [ $(((triple + TURN) % turns)) != 0 ] || return 0
    [ -z "$full_only" ] || return 1
    # The quick run has each of its sizes on the first channel, and its last size on each.
    case ,$quick, in
    *,$1,) return 0 ;;
    *,$1,*) [ "$2" = "${channels%%,*}" ] ;;
    *) return 1 ;;
    esac
}

run_matrix() {
    local sizes channels n c last several pairs=()
    if [ "$full_only" = yes ] && [ -z "${FULL:-}" ]; then
        skipped=$((skipped + 1))
        echo "ok - $name $args # SKIP only with FULL=1"
        return
    fi
    sizes=$quick
    [ -z "${FULL:-}" ] || sizes=$full
    [ -z "${LARGEST:-}" ] || sizes=${sizes##*,}
    sizes=${RANKS:-$sizes}
    channels=$channel_list
    if [ -n "${CHANNELS:-}" ]; then # of those that the case has
        channels=
        for c in ${channel_list//,/ }; do
            case ,$CHANNELS, in *,$c,*) channels+=$c, ;; esac
        done
    fi
    last=${sizes##*,}
    if [ -n "${LAUNCHER:-}" ] && [ ${#xrun_opts[@]} -gt 0 ]; then
        skipped=$((skipped + 1))
        echo "ok - $LAUNCHER $name $args # SKIP it needs xrun"
        return
    fi
    if [ "${LAUNCHER:-}" = srun_hosts ] && [ -n "$one_host" ]; then
        skipped=$((skipped + 1))
        echo "ok - $LAUNCHER $name $args # SKIP it needs one host"
        return
    fi
    for n in ${sizes//,/ }; do
        [ -z "${LAUNCHER:-}" ] || [ "$n" != alone ] || continue
        for c in ${channels//,/ }; do
            if [ "$c" != default ]; then
                [ "${HAVE_UCX:-yes}" = yes ] || continue
                [ -n "${FULL:-}${RANKS:-}" ] || [ "$n" = "$last" ] || continue
                [ "$n" != 1 ] && [ "$n" != alone ] || continue
                [ "$n" -le "${most:-$n}" ] || continue
            fi
            pairs+=("$n $c")
        done
    done
    lines=$((lines + 1))
    # Lines of one run take turns, too, under a sanitizer: all but the first.
    several=
    [ ${#pairs[@]} -le 1 ] && { [ "$long_turns" = 2 ] || [ "$lines" = 1 ]; } || several=yes
    for n in "${!pairs[@]}"; do
        c=${pairs[n]#* }
        if [ -n "${LONG_TURN:-}" ] && [ -n "$several" ] && [ $(((n + lines + LONG_TURN) % long_turns)) != 0 ] || ! due "${pairs[n]% *}" "$c"; then
            skipped=$((skipped + 1))
        else
            run_one "${pairs[n]% *}" "$c"
        fi
    done
}

parse() {
    local o OPTIND=1
    quick=2,4 full=1,2,3,4,7,8,16 channel_list=default,ucx limit=60 victims=0 expect=0 full_only= one_host= most=
    must=() must_not=() xrun_opts=() extra_env=() as_limit= wrap=()
    while getopts q:f:c:m:t:k:e:o:O:x:E:u:w:F1 o; do
        case $o in
        q) quick=$OPTARG ;;
        f) full=$OPTARG ;;
        c) channel_list=$OPTARG ;;
        m) most=$OPTARG ;;
        t) limit=$OPTARG ;;
        k) victims=$OPTARG ;;
        e) expect=$OPTARG ;;
        o) must+=("$OPTARG") ;;
        O) must_not+=("$OPTARG") ;;
        x) read -ra xrun_opts <<<"$OPTARG" ;;
        E) extra_env+=("$OPTARG") ;;
        u) as_limit=$OPTARG ;;
        w) read -ra wrap <<<"$OPTARG" ;;
        F) full_only=yes ;;
        1) one_host=yes ;;
        *) say_usage >&2; exit 2 ;;
        esac
    done
    parsed=$((OPTIND - 1))
}

# Sanitizers and emulators are slower. long_turns: how many runs with LONG_TURN until all have run.
long_turns=2
[ -z "${SAN_CFLAGS:-}" ] || long_turns=3
slower() { case "${SAN_CFLAGS:-}" in *thread*) limit=$((limit * 8)) ;; ?*) limit=$((limit * 4)) ;; esac; }

run_cases_file() {
    local file=$1 line for_all= for_name=
    while IFS= read -r line; do
        case $line in
        "*:"*) for_all=${line#*:}; continue ;;
        "$name*:"*) for_name=${line#*:}; continue ;;
        "$name:"*) ;;
        *) continue ;;
        esac
        line="$for_all $for_name ${line#*:}" # of an option that stands twice, the last counts
        [[ $line =~ ${CASES:-} ]] || continue
        eval "set -- $line" # our own file: quotes in it are meant
        parse "$@"
        shift "$parsed"
        [ "${1:-}" != -- ] || shift
        prog_args=("$@") args="$*"
        slower
        run_matrix
    done <"$file"
}

if [ $# -eq 0 ]; then
    say_usage >&2
    exit 2
fi
# xrun's own threads and PMIx's have more between them that the sanitizer cannot see than a rank's: see tsan_ranks.supp.
for_ranks=()
case ${SAN_CFLAGS:-} in *thread*) for_ranks=(-x "TSAN_OPTIONS=${TSAN_OPTIONS/tsan.supp/tsan_ranks.supp}") ;; esac

if [ ! -x "$XRUN" ] && [ -z "${LAUNCHER:-}" ]; then
    echo "not ok - there is no $XRUN"
    exit 1
fi
case $1 in
-*)
    parse "$@"
    shift "$parsed"
    [ "${1:-}" != -- ] || shift
    program=$1 name=$(basename "$1" .mp)
    shift
    prog_args=("$@") args="$*"
    slower
    run_matrix
    ;;
*)
    program=$1 name=$(basename "$1" .mp)
    case $program in
    /*) dir=$top_srcdir/${program#"$top_builddir"/} ;;
    *) dir=$top_srcdir/${program#./} ;;
    esac
    case $program in /*) ;; *) program=$top_builddir/${program#./} ;; esac
    run_cases_file "$(dirname "$dir")/cases"
    ;;
esac

echo "# $name: $passed passed, $failed failed"
[ -z "${CHANNELS:-}${RANKS:-}${CASES:-}" ] || [ $((passed + failed)) -gt 0 ] || skipped=1 # chosen away
if [ $((passed + failed)) -eq 0 ]; then
    [ $skipped -gt 0 ] && exit 77
    echo "not ok - $name: nothing was run"
    exit 1
fi
[ $failed -eq 0 ]
