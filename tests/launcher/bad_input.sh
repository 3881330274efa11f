#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bad_input.sh: give xrun odd words, and odd files of hosts, ranks and variables.
# Valid input is kept whole. Invalid input gives one line and exit code 2. Nothing waits for ever. The agents of other hosts are
# started by a command that notes its words, each in angles, and fails.
. "$(dirname "$0")/cases.sh"
host=$(hostname)
unset "${!SLURM@}" "${!PBS@}" "${!LSB@}"
escape=$'\033'

mkdir "a dir"
printf '#!/bin/bash\nprintf "<%%s>" "$@" >>"$NOTED"\nexit 3\n' >"a dir/ssh"
chmod +x "a dir/ssh"
export NOTED=$PWD/noted

# noted NAME WORDS ARGS...: its command had these words among its own
noted() {
    local name=$1 words=$2
    shift 2
    : >noted
    run 10 "$@"
    if grep -qF -e "$words" noted; then check "$name" 1; else bad "$name" "its words were: $(head -c 500 noted)"; fi
}
# wrong NAME PATTERN ARGS...: one line of that, exit code 2, and the terminal is not steered
wrong() {
    local name=$1 text=$2
    shift 2
    refused "$name" 2 "$text" "$@" sh -c 'echo ran'
    ! grep -q "$escape" err || bad "$name" "an escape is on the terminal"
}
# lines NAME COUNT PATTERN ARGS...: so many lines, as for a file with bad lines
lines() {
    local name=$1 count=$2 text=$3
    shift 3
    run 10 "$@" sh -c 'echo ran'
    if [ "$(grep -c . err)" != "$count" ] || [ -s out ] || grep -q "$escape" err; then
        bad "$name" "not $count lines, or it ran, or an escape is in them: $(cat out)"
    else
        check "$name" 2 "$text"
    fi
}
map_has() { # NAME PATTERN ARGS...
    local name=$1 text=$2
    shift 2
    rm -f map.json
    run 10 -n 1 --dry-run --json-map map.json "$@" true
    if grep -q -e "$text" map.json; then check "$name" 0; else bad "$name" "$(cat map.json)"; fi
}

# ------------------------------------------------------------------------- how agents are started
long=$(printf '/a/long/way/to/a/library/%.0s' {1..200})
agent="'$PWD/a dir/ssh'"
elsewhere="-n 1 --host elsewhere"
LD_LIBRARY_PATH=$long noted "a long LD_LIBRARY_PATH" "<exec env LD_LIBRARY_PATH='$long' '" --agent "$agent" $elsewhere true
LD_LIBRARY_PATH="/it's" noted "a quote in it" "LD_LIBRARY_PATH='/it'\\''s' " --agent "$agent" $elsewhere true
many=$(printf -- '-o many%d ' {1..150})
noted "many words of --ssh-args" "<many150><-x>" --agent "$agent" --ssh-args "$many" $elsewhere true
noted "many words of --agent" "<many150><-x>" --agent "$agent $many" $elsewhere true
noted "quotes in --ssh-args" '<-o><ProxyCommand=a  b><-l><it is><"$x\y>' --agent "$agent" \
    --ssh-args "-o 'ProxyCommand=a  b' -l it\\ is \"\\\"\\\$x\\y\"" $elsewhere true
noted "no name is an option of ssh's" '<--><elsewhere><exec ' --agent "$agent" $elsewhere true
ln -s "$PWD/a dir/ssh" other
noted "other commands get what they got" '<elsewhere><exec ' --agent "$PWD/other x" $elsewhere true
! grep -qF '<-->' noted && good "they get no --" || bad "they get no --" "$(cat noted)"
noted "a command seen from here" '<elsewhere><exec ' --agent "./other x" $elsewhere true
ln -s ../noted "a dir/noted"
cd "a dir" && noted "and from a directory with a blank" '<x><-x>' --agent " ./ssh x" $elsewhere true && cd ..
wrong "a command that is not there" "error: there is no program no\?-ssh in PATH \(--agent\)$" --agent "no$escape-ssh" $elsewhere
wrong "nor here" "error: --agent: there is no program $PWD/\./no-ssh$" --agent "./no-ssh x" $elsewhere
new_case
PATH=/nowhere "$XRUN" $elsewhere /bin/true >out 2>err; rc=$?
check "ssh is not there" 2 'there is no program ssh in PATH, by which other hosts are reached; --agent names another$'
wrong "a quote that stays open" "--ssh-args is '-o 'a b': a ' is not closed" --ssh-args "-o 'a b"
wrong "another" '--agent is .*: a " is not closed' --agent 'a "b'
wrong "a \\ at the end" 'nothing stands behind the last' --agent 'a\'
wrong "an agent without a command" "--agent is '  ', which names no command" --agent '  '

# ------------------------------------------------------------------------- names
printf 'rank 0=-oProxyCommand=touch slot=0\n' >ranks
lines "an option as a rankfile's host" 2 "ranks:1: '-oProxyCommand=touch': a host's name is missing" --rankfile ranks
printf 'rank 0=a%s]0;x\n' "$escape" >ranks
lines "an escape in a rankfile" 2 "ranks:1: .*a host's name is letters" --rankfile ranks
printf 'rank x%s=a\n' "$escape" >ranks
lines "another" 2 "ranks:1: 'x\?' is not a rank" --rankfile ranks
printf '%s\n' -oProxyCommand=touch >nodes
PBS_NODEFILE=$PWD/nodes wrong "an option in PBS's file" "nodes:1, which PBS_NODEFILE names: '-oProxyCommand=touch'"
printf 'good\na%sb\n' "$escape" >nodes
LSB_DJOB_HOSTFILE=$PWD/nodes wrong "an escape in LSF's" "nodes:2, which LSB_DJOB_HOSTFILE names: 'a\?b': a host's name is letters"
LSB_MCPU_HOSTS='-o 2' wrong "an option in LSF's pairs" "LSB_MCPU_HOSTS is '-o 2'"
LSB_HOSTS='-o' wrong "an option in LSF's words" "LSB_HOSTS is '-o'"
printf 'x%s[2J\n' "$escape" >file
lines "an escape in a hostfile" 2 'file:1: ' --hostfile file
wrong "an escape in --host" "--host: 'x\?'" --host "x$escape"
wrong "half a bracket" "--host: 'n\]': a host's name is letters" --host 'n]'
wrong "an option behind a user" "around @ stand a user and a host" --host 'me@-x'
for v6 in ::1 fd78::2; do
    wrong "$v6 without brackets" "--host: '$v6': an address of IPv6 stands in brackets" --host $v6
done
wrong "no address" "'\[a:b\]': this is not an IPv6 address" --host '[a:b]'
map_has "one in brackets, with slots" '"slots": 3' --host '[::1]:3'
printf 'rank 0=[::1] slot=0\n' >ranks
run 10 --rankfile ranks true
check "a rankfile has brackets, too" 0

case $host in
*.* | [0-9]*) ;;
*) # the second is another host; its agent does not start here
    noted "one short name in two networks is two hosts" "<$host.b><exec " --agent "$agent" --dry-run -n 2 --host "$host.a:1,$host.b:1" true
    ;;
esac

# ------------------------------------------------------------------------- networks
for network in 10.0.0.0/abc 10.0.0.0/ 10.0.0.0/33 /8 10.0.0/8 fd00::/129 10.0.0.0/8x; do
    wrong "no network: $network" "--if is '$network'; give an interface, or a network" --if $network --host "$host"
done
wrong "no such interface" 'no network address of no-such0 is there' --if no-such0 --agent "$agent" $elsewhere

# ------------------------------------------------------------------------- what does not go together
printf 'rank 0=%s slot=0\n' "$host" >ranks
wrong "--rankfile and --bind" '--rankfile and --bind both say' --rankfile ranks --bind core
wrong "--rankfile and --rank-by" '--rankfile and --rank-by both say' --rankfile ranks --rank-by node
wrong "--rankfile and --cpus-per-rank" '--rankfile and --cpus-per-rank both say' --rankfile ranks --cpus-per-rank 2
run 10 --rankfile ranks --bind hwthread true
check "--rankfile in hardware threads" 0
printf 'rank 0=%s slot=0-0,0\n' "$host" >ranks
run 10 --rankfile ranks true
check "a range of cores" 0
printf 'rank 0=%s slot=0-400000000\n' "$host" >ranks
lines "no machine has so many cores" 2 'cores are numbered' --rankfile ranks
[ "$ms" -le $((2000 * slow)) ] && good "they are not counted" || bad "they are not counted" "$ms ms"
run 10 -n 1 --cpus-per-rank 4096 true
check "fewer cores than requested" 0 'cores? for 1 rank on .*: fewer than --cpus-per-rank 4096 asks for'
! grep -q yield err && good "a waiting rank does not yield" || bad "a waiting rank does not yield" "it does"

# ------------------------------------------------------------------------- files
mkfifo fifo
for option in hostfile rankfile env-file; do
    wrong "a --$option that is a folder" '(Is a directory)' --$option .
done
PBS_NODEFILE=. wrong "a node file that is a folder" 'cannot read ., which PBS_NODEFILE names: Is a directory'
wrong "a file without a line" 'names no host' --hostfile /dev/null
map_has "process substitution" '"slots": 4' --hostfile <(echo "$host slots=4")
new_case
echo "$host slots=6" | timeout $((10 * slow)) "$XRUN" -n 1 --dry-run --json-map map.json --hostfile /dev/stdin true >out 2>err
rc=$?
grep -q '"slots": 6' map.json && check "standard input" 0 || bad "standard input" "$(cat map.json)"
timeout $((10 * slow)) sh -c 'exec 3>fifo; echo "$1 slots=5" >&3' sh "$host" & # it goes on when xrun has opened the other end
map_has "a pipe with a late writer" '"slots": 5' --hostfile fifo
wait $!
printf '%s slots=2\r\n' "$host" >file
map_has "a hostfile of another system" '"slots": 2' --hostfile file
printf '%s slots=8 max_slots=3\n' "$host" >file
map_has "no more than max_slots" '"slots": 3' --hostfile file
printf '%s:5 max_slots=3\n' "$host" >file
map_has "nor behind a colon" '"slots": 3' --hostfile file
printf 'a\0b\nb:2 slots=3\nc slots=3 slots=4\nd\n' >file
lines "a hostfile with odd lines" 4 'the hostfile file has 3 bad lines' --hostfile file
for line in 'file:1: the line holds a NUL byte' "file:2: 'b:2': how many ranks it takes" "file:3: 'slots=4': that was said before"; do
    grep -q -e "$line" err && good "named: ${line%%: *}" || bad "named: ${line%%: *}" "no such line"
done
printf 'ODD=a b\r\nEVEN=c\n' >vars
run 10 -n 1 --env-file vars sh -c 'echo "$ODD,$EVEN."'
same "an --env-file of another system" 'a b,c.'
exec 3< <(:)
wait $! # no process has it open any more, and no trace of the writer is left
run 10 -n 1 --env-file /dev/fd/3 sh -c 'echo here'
exec 3<&-
same "an --env-file that is an ended pipe without a line" here
[ "$ms" -le $((1500 * slow)) ] && good "it is not waited for" || bad "it is not waited for" "$ms ms"
for tasks in 4junk 4,4 '4(x2)' 4, '4(x0)' '4(x1'; do
    SLURM_JOB_NODELIST=$host SLURM_TASKS_PER_NODE=$tasks wrong "Slurm's tasks: $tasks" 'SLURM_TASKS_PER_NODE is'
done

echo "# bad_input: $passed passed, $failed failed"
[ $failed -eq 0 ]
