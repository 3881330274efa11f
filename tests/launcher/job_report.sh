#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# job_report.sh: check --json, the report of a job: valid for any bytes, and true.
. "$(dirname "$0")/cases.sh"
command -v python3 >/dev/null || { echo "# no python3 to read JSON with"; exit 77; }
client=$top_builddir/tests/launcher/programs/pmix_client
mark="touch $work/started"

cat >look.py <<'EOS'
# look.py NAME EXPRESSION...: each must hold for the report r of r.json
import json, sys
def no(pairs):
    names = [k for k, _ in pairs]
    assert len(set(names)) == len(names), "a key twice in %r" % names
    return dict(pairs)
with open("r.json", encoding="utf-8", errors="strict") as f:
    r = json.load(f, object_pairs_hook=no, parse_constant=lambda c: sys.exit("no JSON: " + c))
ranks = r["ranks"]
for e in sys.argv[1:]:
    if not eval(e):
        sys.exit("not so: %s; %s" % (e, json.dumps(r)))
EOS
look() { # NAME CODE EXPRESSION...
    local name=$1 code=$2 said
    shift 2
    if said=$(python3 look.py "$@" 2>&1); then check "$name" "$code"; else bad "$name" "${said##*$'\n'}"; fi
}

mkdir two
run 10 -n 2 --json r.json sh -c 'exit 0' first : -n 3 --wdir two sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 0.2'
look "a job of two programs" 0 \
    'r["size"] == 5 and r["exit_code"] == 0 and r["cause"] is None and not r["output_lost"]' \
    'r["job"].startswith("xrun-") and r["versions"]["xrun"] and r["versions"]["pmix"][0].isdigit()' \
    '[(p["first_rank"], p["ranks"]) for p in r["programs"]] == [(0, 2), (2, 3)]' \
    'r["programs"][0]["argv"] == ["sh", "-c", "exit 0", "first"] and r["programs"][1]["wdir"].endswith("/two")' \
    '[(k["rank"], k["program"], k["exit_code"], k["signal"]) for k in ranks] == [(0,0,0,None),(1,0,0,None),(2,1,0,None),(3,1,0,None),(4,1,0,None)]' \
    'all(r["start"] <= k["start"] <= k["end"] <= r["end"] for k in ranks)' \
    'all(abs(k["end"] - k["start"] - k["seconds"]) < 0.05 for k in ranks)' \
    'all(0.2 <= k["seconds"] < 10 for k in ranks[2:]) and all(k["rusage"]["user"] > 0 for k in ranks[2:])' \
    'all(k["rusage"]["max_rss_kib"] > 100 and k["rusage"]["minor_faults"] > 0 for k in ranks)' \
    'all(k["pid"] > 1 and k["host"] == r["hosts"][0]["name"] for k in ranks) and r["hosts"][0]["ranks"] == 5' \
    'r["startup_ms"]["total"] > 0 and {"PMIx server", "namespace", "ranks", "front end"} <= set(r["startup_ms"])'
cpus=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)
run 10 -n 1 --bind none --json r.json sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status
look "cpus of a rank that is not bound" 0 "ranks[0]['cpus'] == '$cpus' and not ranks[0]['bound']"
if [ "$(nproc)" -ge 2 ]; then
    run 10 -n 2 --bind core --json r.json sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status
    look "cpus of ranks that are" 0 "sorted(k['cpus'] for k in ranks) == sorted('''$(cat out)'''.split()) and all(k['bound'] for k in ranks)"
fi
# Every byte that an argument can hold, alone and in one text; and texts that are nearly UTF-8.
all=$(python3 -c 'import sys; sys.stdout.buffer.write(bytes(b for b in range(1, 256) if b != 10))')
run 10 --json r.json true "$all" $'\n' $'\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80' $'\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82' '"\\/'
look "valid whatever the bytes" 0 \
    'r["programs"][0]["argv"][2:4] == ["\n", "\u00e9 \u20ac \U0001f600"] and r["programs"][0]["argv"][5] == chr(34) + 2 * chr(92) + "/"' \
    'set(r["programs"][0]["argv"][4]) == {"\ufffd", " "} and len(r["programs"][0]["argv"][1]) >= 200' \
    'all(chr(c) in r["programs"][0]["argv"][1] for c in range(1, 128) if c != 10)'
mkdir $'bad\xffname'
run 10 --json r.json --wdir $'bad\xffname' true
look "a folder with such a name" 0 'r["programs"][0]["wdir"].endswith("/bad\ufffdname")'
run 10 -n 3 --json r.json sh -c '[ $XRUN_RANK != 1 ] || exit 7; sleep 60'
look "a failure" 7 'r["exit_code"] == 7 and r["cause"] == "rank 1 exited with code 7"' \
    'ranks[1]["exit_code"] == 7 and ranks[0]["signal"] == 15 and ranks[0]["exit_code"] is None'
run 10 -n 3 --json r.json "$client" unfinished 1
look "a rank that does not finalize" 1 'ranks[1]["unfinished"] and ranks[1]["exit_code"] == 0'
run 10 -n 3 --json r.json "$client" abort 2
look "an abort" 42 'r["cause"] == "rank 2 aborted with code 42: the sky is falling"'
run 10 --json r.json --timeout 0.2 sleep 60
look "a time-out" 124 'r["cause"] == "timeout" and r["exit_code"] == 124'
begin --json r.json sh -c 'echo ready; sleep 60'; until_true 5 ready 1; kill -TERM "$xpid"; reap 5
look "a signal" 143 'r["cause"] == "signal 15 (Terminated)"'
begin -n 2 --json r.json sh -c 'echo ready; sleep 60'; until_true 5 ready 2
supervisor=$(pgrep -P "$xpid" 2>/dev/null); agent=$(pgrep -P "${supervisor:-0}" 2>/dev/null)
if [ -n "$agent" ]; then
    kill -9 "$agent"; reap 5
    look "the agent's death" 1 'r["cause"].endswith("died") and "exit_code" not in ranks[0]'
else
    kill_all; wait "$xpid"
fi
printf '#!/no/such/interpreter\n' >badshebang; chmod +x badshebang
run 10 -n 2 --json r.json ./badshebang
look "a job that does not start" 127 '"cannot execute" in r["cause"] and ranks[0]["pid"] is None'
refused "--json into no folder" 2 '--json: cannot write no/such/file: No such file' --json no/such/file $mark
run 10 --json /dev/full true; check "--json on a full disk" 74 '--json: cannot write /dev/full: '
echo "# job_report: $passed passed, $failed failed"
[ $failed -eq 0 ]
