# SPDX-License-Identifier: BSD-3-Clause
# left.sh: find what a job leaves on simulated hosts.
# Any process, any listening socket of TCP and UDP, of the file system or
# abstract, any file in /tmp, /dev/shm, /run and TMPDIR, any segment of System V. Whatever was not there when "remember"
# was called is left, by whatever name it goes. Sourced after inside.sh.
#
#   remember HOST...   record these hosts, between two cases
#   left [HOST...]     a line for each thing there now that was not (default: all that are remembered)
#   none_left [HOST...]
#   sweep [HOST...]    end and remove what is left, so that the next case is not blamed for it
#   watch_ends HOST... record when the processes end that are left there now, but not those with unwatched in their line. Before a fault
#   all_ended          waits for that, 60 s at most; then ended_at is the time when the last did, in microseconds since 1970, and watched
#                      how many they were
#   verdict NAME CODE [pattern of err]   after a job that has set rc, err and perhaps ms: it ended so, and nothing is left
#
# What a script has that judges by more or by less: stays, what verdict takes for left; tidy, how it goes; patience, seconds
# until it is gone by itself.

# Runs there, in one process. Before the tab stands the mark of a thing; daemons may rename themselves.
look_here() {
    local p f line words
    shopt -s nullglob dotglob
    for p in /proc/[0-9]*; do
        [ "${p#/proc/}" != $$ ] && read -r line <"$p/stat" || continue
        words=()
        mapfile -d '' words <"$p/cmdline"
        line=${line#*(}
        line=${words[*]:-${line%)*}}
        printf 'process %s\t%.200s\n' "${p#/proc/}" "${line//[$'\t\n']/ }"
    done 2>/dev/null
    for f in /tmp/* /dev/shm/* /run/* ${TMPDIR:+"$TMPDIR"/*}; do
        printf 'file %s\t\n' "$f"
    done
    for p in tcp tcp6 udp udp6; do
        while read -r _ line _ words _; do
            case $p:$words in
            tcp*:0A | udp*:07) printf 'port %s %s\t(%d)\n' $p "$line" "0x${line##*:}" ;;
            esac
        done <"/proc/net/$p"
    done
    while read -r _ _ _ line _ _ p f; do
        [ "$line" != 00010000 ] || printf 'socket %s\t%s\n' "$p" "$f"
    done </proc/net/unix
    while read -r p line _; do
        printf 'segment %s %s\t\n' "$p" "$line"
    done </proc/sysvipc/shm
    echo looked
}
look_at() { on "$1" bash -c "$(declare -f look_here); look_here"; }

remember() {
    local h
    remembered=${remembered:-$*}
    for h; do look_at "$h" >"$work/before.$h"; done
}
left() {
    local h
    # shellcheck disable=SC2086 # names
    for h in ${*:-$remembered}; do
        look_at "$h" | awk -F '\t' -v host="$h" '
            NR == FNR { before[$1]; next }
            $0 == "looked" { looked = 1; next }
            !($1 in before) { print host ": " $1 " " $2 }
            END { if (!looked) print host ": cannot be looked at" }' "$work/before.$h" -
    done
}
none_left() { [ -z "$(left "$@")" ]; }
sweep() {
    local host what which
    left "$@" | while read -r host what which; do
        case $what in
        process) on "${host%:}" kill -9 "${which%% *}" ;;
        file) on "${host%:}" rm -rf "$which" ;;
        esac </dev/null
    done
    # What does not go counts as known from now on.
    # shellcheck disable=SC2086
    until_true 5 none_left "$@" || remember ${*:-$remembered}
}
# The kernel reports the end of a process.
ends_py='import os, select, sys, time
those, limit = [], time.monotonic() + 60
for pid in sys.argv[1:]:
    try:
        those.append(os.pidfd_open(int(pid)))
    except ProcessLookupError:
        pass
print("watched", len(those), flush=True)
for one in those:
    if not select.select([one], [], [], max(0, limit - time.monotonic()))[0]:
        sys.exit("they do not end")
print("ended", time.time_ns() // 1000)'
unwatched='^$'
watch_ends() {
    local h
    watchers=
    rm -f "$work"/ends.*
    for h; do
        # shellcheck disable=SC2046 # numbers
        on "$h" python3 -c "$ends_py" $(left "$h" | grep -vE -e "$unwatched" | sed -n 's/^[^ ]*: process \([0-9]*\) .*/\1/p') \
            >"$work/ends.$h" </dev/null &
        watchers="$watchers $!"
        until_true 20 grep -qs '^watched' "$work/ends.$h" || return 1
    done
}
all_ended() {
    # shellcheck disable=SC2086 # numbers
    wait $watchers
    watched=$(awk '$1 == "watched" { n += $2 } END { print n + 0 }' "$work"/ends.*)
    ended_at=$(awk '$1 == "watched" { n++ } $1 == "ended" { n--; if ($2 > last) last = $2 } END { printf "%.0f", last; exit n != 0 }' "$work"/ends.*)
}
stays() { left; }
tidy() { sweep; }
patience=5
clear_of_all() { [ -z "$(stays)" ]; }
verdict() {
    if [ "$rc" != "$2" ]; then
        bad "$1" "exit code $rc, not $2${ms:+; $ms ms}"
    elif [ -n "${3:-}" ] && ! grep -qE -e "$3" err; then
        bad "$1" "stderr does not say '$3'"
    elif ! until_true $patience clear_of_all; then
        bad "$1" "left behind: $(stays)"
        tidy
    else
        good "$1"
    fi
}
