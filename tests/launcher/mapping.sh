#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mapping.sh: map ranks by options about hosts and places, as a user gives them.
# This host, and lists of hosts that are refused before anything is started; mapper_test has other machines.
. "$(dirname "$0")/cases.sh"
host=$(hostname)

# turned_down NAME TEXT ARGS...: exit code 2, a line that gives the reason, nothing started
turned_down() {
    local name=$1 text=$2
    shift 2
    rm -f ran
    run 10 "$@" sh -c 'touch ran'
    check "$name" 2 "$text"
    [ ! -e ran ] || bad "$name" "something was started"
}

turned_down "a level that is none" "--map-by is 'sokcet'; give slot, node" --map-by sokcet
turned_down "ppr without a number" "--map-by is 'ppr:core'" --map-by ppr:core
turned_down "an order that is none" "--rank-by is 'x'; give slot, node or fill" --rank-by x
turned_down "no cores a rank" "--cpus-per-rank is '0'" --cpus-per-rank 0
turned_down "more ranks than ppr gives" 'ppr:1:node makes 1 rank on these hosts, but -n is 2' -n 2 --map-by ppr:1:node
turned_down "a host list without a name" "--host: '': a host's name is missing" --host a,,b
turned_down "a range that goes down" "--host: 'n\[3-1\]': a range goes upwards" --host 'n[3-1]'
turned_down "a bracket that stays open" 'a \[ has no \]' --host 'n[3-'
turned_down "slots that are none" "'a:x': behind the colon stands how many ranks" --host a:x
turned_down "a hostfile that is not there" 'cannot read the hostfile no-such: No such file' --hostfile no-such
printf '%s\n' "good slots=2" "bad slots=x" "# a comment" "" "b[1-2" "ok:3" "c slots=1 what" >hosts
turned_down "a hostfile with bad lines" 'the hostfile hosts has 3 bad lines' --hostfile hosts
for line in "hosts:2: 'slots=x': give a number" "hosts:5: 'b\[1-2': a \[ has no \]" "hosts:7: 'what' is not understood"; do
    grep -q -- "$line" err && good "named: ${line%%: *}" || bad "named: ${line%%: *}" "no such line"
done
echo "# nothing" >hosts
turned_down "a hostfile without hosts" 'the hostfile hosts names no host' --hostfile hosts
printf 'x slots=2\ny slots=2\n' >hosts
turned_down "a host that the hostfile has not" 'host z of --host is not among the 2 hosts that the hostfile gives' --hostfile hosts --host z
printf '%s slots=1 max_slots=2\n' "$host" >hosts
turned_down "more ranks than max_slots" 'these hosts take 2 ranks at most \(max_slots\), but -n is 3' -n 3 --hostfile hosts
turned_down "more than that by ppr" "--map-by ppr puts 3 ranks on host $host, of which max_slots is 2" --map-by ppr:3:node --hostfile hosts --host localhost
SLURM_JOB_NODELIST='n[1-' turned_down "Slurm's list is not understood" 'SLURM_JOB_NODELIST is not understood'
PBS_NODEFILE=/no/such turned_down "PBS's file is not there" 'cannot read /no/such, which PBS_NODEFILE names'
LSB_MCPU_HOSTS='a x' turned_down "LSF's pairs are none" "LSB_MCPU_HOSTS is 'a x'"
printf 'rank 0=%s slot=0\nrank 0=%s\nrank 1=%s slot=x\nrank x=a\nwhat\n' "$host" "$host" "$host" >ranks
turned_down "a rankfile with bad lines" 'the rankfile ranks has 4 bad lines' --rankfile ranks
for line in "ranks:2: rank 0 stands here a second time" "ranks:3: 'x': cores are numbered" "ranks:4: 'x' is not a rank" "ranks:5: a line reads"; do
    grep -q -- "$line" err && good "named: ${line%%: *}" || bad "named: ${line%%: *}" "no such line"
done
printf 'rank 0=%s\nrank 2=%s\n' "$host" "$host" >ranks
turned_down "a rankfile with a gap" 'has no line for rank 1' --rankfile ranks
printf 'rank 0=%s slot=9999\n' "$host" >ranks
turned_down "a rankfile with cores that are not there" "gives rank 0 cores that host $host does not have" --rankfile ranks
turned_down "a rankfile and a map" '--rankfile and --map-by both say' --rankfile ranks --map-by node

# what is there
run 10 -n 2 --dry-run sh -c 'touch ran'
check "a dry run" 0 ''
[ ! -e ran ] && grep -q "^ *1  $host" out && good "it prints a table and starts nothing" || bad "it prints a table and starts nothing" "$(cat out)"
mkdir dir; echo precious | tee dir/rank.0.out >report
run 10 -n 2 --dry-run --output-dir dir --json report sh -c 'touch ran'
check "a dry run with files to be written" 0 ''
run 10 -n 2 --dry-run --output-dir new true
[ "$(cat dir/rank.0.out report)" = "$(printf 'precious\nprecious')" ] && [ "$(ls dir)" = rank.0.out ] && [ ! -e new ] &&
    good "it touches none" || bad "it touches none" "$(ls dir new 2>&1)"
run 10 -n 2 --map-by core --show-map --json-map map.json --bind core taskset -cp 0
python3 - "$host" <<'PY' && good "the map as JSON" || bad "the map as JSON" "$(cat map.json)"
import json, sys
m = json.load(open("map.json"))
assert [h["name"] for h in m["hosts"]] == [sys.argv[1]]
assert m["programs"] == ["taskset"] and [r["program"] for r in m["ranks"]] == [0, 0]
assert [r["rank"] for r in m["ranks"]] == [0, 1] and [r["local_rank"] for r in m["ranks"]] == [0, 1]
if m["hosts"][0]["cores"] > 1:
    assert m["ranks"][0]["cpus"] and not set(m["ranks"][0]["cpus"]) & set(m["ranks"][1]["cpus"])
PY
# Ranks find themselves bound to the cores in the table.
cat >bound.py <<'PY'
import os, sys
def cpus(text):
    ends = [part.partition("-") for part in text.split(",")]
    return {cpu for a, _, b in ends for cpu in range(int(a), int(b or a) + 1)}
ranks, table = {}, {}
for line in open("out"):
    w = line.split()
    if line.startswith("is "):
        ranks[int(w[1])] = cpus(w[2])
    elif len(w) > 3 and w[0].isdigit() and w[1] == sys.argv[1]:
        table[int(w[0])] = os.sched_getaffinity(0) if w[3:] == ["not", "bound"] else cpus(w[3])
assert len(ranks) == 2 and ranks == table, (ranks, table)
PY
for how in "--bind share" "--bind none" "--bind hwthread" "--bind core" "--bind l3" "--bind numa" "--bind package" "--map-by core --rank-by node" \
    "--map-by numa --bind core --rank-by fill" "--map-by package --cpus-per-rank 1" "--map-by hwthread --bind core --rank-by fill"; do
    run 10 -n 2 $how --show-map sh -c 'echo is $XRUN_RANK $(taskset -cp $$ | sed "s/.*: //")'
    ! grep -q "host $host shows no" err || continue # a machine without that
    if python3 bound.py "$host" 2>wrong; then check "ranks are where --show-map puts them: $how" 0; else bad "ranks are where --show-map puts them: $how" "$(tail -n 1 wrong) $(cat out)"; fi
done
run 10 --dry-run --json-map map.json true : -n 2 /bin/sh -c true : true
[ "$(awk '$1 ~ /^[0-9]+$/ { print $1, $4, $5 }' out)" = "$(printf '0 1 true\n1 2 sh\n2 2 sh\n3 3 true')" ] && grep -q '^  rank .* program  *cpus$' out &&
    [ "$(python3 -c 'import json; m = json.load(open("map.json")); print(m["programs"], [r["program"] for r in m["ranks"]])')" = "['true', '/bin/sh', 'true'] [0, 1, 1, 2]" ] &&
    check "which rank runs which program" 0 '' || bad "which rank runs which program" "$(cat out map.json)"
run 10 -n 2 --dry-run --json-map /no/such/map true
check "a map that cannot be written" 2 '--json-map /no/such/map: No such file'
printf 'rank 1=%s slot=0\nrank 0=+n0\n' "$host" >ranks
run 10 --rankfile ranks sh -c 'echo $XRUN_RANK $(taskset -cp $$ | sed "s/.*: //")'
check "a rankfile" 0 ''
[ "$(sort out)" = "$(printf '0 %s\n1 0' "$(taskset -cp $$ | sed 's/.*: //')")" ] &&
    good "its ranks are where it puts them" || bad "its ranks are where it puts them" "$(cat out)"
printf 'rank 0=%s slot=0\nrank 1=%s slot=0\n' "$host" "$host" >ranks
run 10 --rankfile ranks sh -c 'echo $OMPI_MCA_mpi_yield_when_idle $(taskset -cp $$ | sed "s/.*: //")'
check "two ranks on one core by a rankfile are reported" 0 "^xrun: ranks share cores of $host, as the rankfile says: waiting ranks yield\$"
[ "$(sort -u out)" = "1 0" ] && good "they yield, and stay there" || bad "they yield, and stay there" "$(cat out)"
run 10 --map-by ppr:3:node sh -c 'echo $XRUN_SIZE'
[ "$(sort -u out)" = 3 ] && [ "$(wc -l <out)" = 3 ] && good "ppr gives the number" || bad "ppr gives the number" "$(cat out)"
printf '%s\n%s\n%s\n' "$host" "$host" "$host" >nodes
PBS_NODEFILE=$PWD/nodes run 10 --map-by node -n 3 --json-map map.json true
grep -q '"slots": 3' map.json && good "the slots of PBS" || bad "the slots of PBS" "$(cat map.json)"
SLURM_JOB_NODELIST=$host SLURM_TASKS_PER_NODE='5(x1)' run 10 --json-map map.json true
grep -q '"slots": 5' map.json && good "the slots of Slurm" || bad "the slots of Slurm" "$(cat map.json)"
LSB_MCPU_HOSTS="$host 7" run 10 --json-map map.json true
grep -q '"slots": 7' map.json && good "the slots of LSF" || bad "the slots of LSF" "$(cat map.json)"
run 10 --host "$host:2,$host" --json-map map.json true
grep -q '"slots": 3' map.json && good "a host that is named twice" || bad "a host that is named twice" "$(cat map.json)"
if [ "$(nproc)" -gt 1 ]; then
    run 10 -n 1 taskset -c 0 "$XRUN" -n 1 --bind core sh -c 'taskset -cp $$ | sed "s/.*: //"'
    [ "$(cat out)" = 0 ] && good "only the cores that xrun was given" || bad "only the cores that xrun was given" "$(cat out)"
fi
echo "# mapping: $passed passed, $failed failed"
[ $failed -eq 0 ]
