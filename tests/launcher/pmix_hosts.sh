#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pmix_hosts.sh: run PMIx clients on one host and on two.
# Covers events that a rank raises, PMIx_Get with a time-out and of ranks that die, fences with a time-out and with clients that
# die behind a script. tests/hosts.sh makes the hosts.
. "$(dirname "$0")/../inside.sh"
inside_if_able 2
. "$(dirname "$0")/cases.sh"
. "$top_srcdir/tests/left.sh"
[ -z "${RK_INSIDE:-}" ] || remember hosta hostb
far=$top_builddir/tests/launcher/programs/pmix_hosts_client

# job LIMIT ARGS...: at this number of hosts
job() {
    local limit=$(($1 * slow))
    shift
    new_case
    case $where in
    here) timeout -k 5 "$limit" "$XRUN" -q --bind none -n 4 "$@" ;;
    *) on hosta timeout -k 5 "$limit" env XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" "$XRUN" -q -n 4 --host hosta:2,hostb:2 "$@" ;;
    esac >out 2>err </dev/null
    rc=$?
}
all_gone() {
    if [ "$where" = here ]; then nothing_left; else none_left; fi
}
# right NAME OKS CODE
right() {
    if [ "$rc" != "$3" ] || [ "$(grep -cx ok out)" != "$2" ]; then
        bad "$1, $where" "exit code $rc, not $3; $(grep -cx ok out) ranks are right, not $2"
    elif ! until_true 5 all_gone; then
        bad "$1, $where" "left behind: $(alive) $(ls -A tmp) $([ "$where" = here ] || left)"
        kill_all
        [ "$where" = here ] || sweep
    else
        good "$1, $where"
    fi
}

# A script after the death of its client: the three others do not wait for the script's own end.
others_end="until [ \"\$(grep -cx ok '$PWD/out')\" = 3 ]; do sleep 0.02; done"

for where in here ${RK_INSIDE:+"on two hosts"}; do
    for range in namespace session global custom local proc; do
        job 30 "$far" notify 1 $range
        right "an event for range $range" 4 0
    done
    job 30 "$far" notify 3 namespace
    right "an event of the last rank" 4 0
    job 60 "$far" log-much 3
    right "65 MiB of PMIx_Log" 4 0
    [ "$(grep -v '^ok$' out | tr -d 'x\n' | wc -c) $(grep -cE '^x{99}$' out) $(wc -c <out)" = "0 681574 $(((65 << 20) + 12))" ] &&
        good "and all of it" || bad "and all of it" "$(wc out)"
    job 60 "$far" abort-at-length 3
    right "65 MiB to abort with" 0 42
    [ "$(wc -c <err)" -lt 100000 ] && grep -q 'aborted the job with code 42: xxx' err && grep -q 'and more: 68157440 bytes in all' err &&
        good "of which the beginning is shown" || bad "of which the beginning is shown" "$(wc err)"
    job 40 "$far" get-in-vain 3
    right "PMIx_Get with a time-out of what is never committed" 4 0
    job 40 "$far" get-late 3
    right "PMIx_Get of what is committed later" 4 0
    for when in before after; do
        job 30 --on-failure continue "$far" get-$when-death 3
        right "PMIx_Get $when a rank's death" 3 137
        job 30 --on-failure continue sh -c "[ \$XRUN_RANK != 3 ] || { $far get-$when-death 3 behind; $others_end; exit 5; }; exec $far get-$when-death 3 behind"
        right "PMIx_Get $when the death of a client behind a script" 3 5
    done
    for when in before after; do
        job 30 "$far" get-$when-leave 3
        right "PMIx_Get $when the ranks of a host have left" 4 0
    done
    job 30 "$far" get-left 3
    right "what a rank has put outlives it" 4 0
    # Some are on its host then, and some are not.
    if [ "$where" != here ]; then
        job 30 "$far" get-left-late 3
        right "also after a while" 4 0
        job 60 "$far" too-much 0
        right "more than a message holds is refused to its callers" 4 0
        grep -q 'a fence of PMIx over several hosts fails: .* a message of [0-9]* bytes, and 67108864 are the most' err &&
            grep -q 'a rank has committed [0-9]* bytes, which is more than another host can be sent' err &&
            good "and reported" || bad "and reported" "$(cat err)"
    fi
    job 30 --on-failure continue "$far" get-left 3 dies
    right "and its death" 3 137
    rm -f came.* left.*
    job 60 "$far" fence-some 0
    right "fences of some ranks, several at once" 4 0
    for dies in 3 0; do
        for when in before in; do
            rm -f came.* left.*
            job 30 --on-failure continue "$far" die-$when-some $dies
            right "rank $dies dies $when a fence of three" 3 137
        done
        rm -f came.* left.*
        job 30 "$far" absent-some $dies
        right "rank $dies does not come to a fence of three" 3 0
    done
    rm -f came.* left.* dead
    job 30 --on-failure continue -x FAR_DEAD=dead sh -c "[ \$XRUN_RANK != 3 ] || { $far die-before-some 3; >dead; $others_end; exit 5; }; exec $far die-before-some 3"
    right "a client dies behind a script before a fence of three" 3 5
    if [ "$where" = here ]; then
        rm -f came.* left.*
        job 60 -n 12 --on-failure continue "$far" die-beside-some 0
        right "ranks die as others begin fences with them" 3 137
    fi
    for when in finalize-before leave-before leave-in; do
        rm -f came.* left.*
        job 30 "$far" $when-some 3
        right "a finalized rank is waited for in no fence: $when" 4 0
    done
    job 60 "$far" leave-in-turn 0
    right "one after the other leaves" 4 0
    job 60 "$far" fence-late 3
    right "a fence with a time-out" 4 0
    for when in before in; do
        job 30 --on-failure continue "$far" die-$when-fence 3
        right "death $when a fence" 3 137
        job 30 --on-failure continue sh -c "[ \$XRUN_RANK != 3 ] || { $far die-$when-fence 3; $others_end; exit 5; }; exec $far die-$when-fence 3"
        right "death $when a fence, behind a script" 3 5
    done
done
echo "# pmix_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
