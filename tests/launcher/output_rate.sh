# SPDX-License-Identifier: BSD-3-Clause
# output_rate.sh: check that all output of 32 ranks comes, at its rate.
# Each rank writes 10,000 lines a second (many_lines.c). Sourced after cases.sh.
#
#   in_pace COMMAND...   runs COMMAND with the arguments for many_lines.c. Sets rc and ms, and leaves the output in out. Three
#                        tries. rc is 0 if the last one ended well with each byte right. late is empty if the rate was kept, else
#                        it describes the difference.
lines=$top_builddir/tests/launcher/programs/many_lines

# bare_copy RATE SECONDS: ms that the same lines take without a launcher, each rank's through two pipes into a file
bare_copy() {
    local r t0=${EPOCHREALTIME/./}
    for ((r = 0; r < 32; r++)); do
        XRUN_RANK=$r "$lines" write "$1" "$2" | cat | cat >bare.$r &
    done
    wait
    echo $(((${EPOCHREALTIME/./} - t0) / 1000))
    rm -f bare.*
}

# 2 s of lines are there after 4 s. A machine that is too busy for that is measured as well: what it takes, just then, to start
# the job, and twice what a bare copy of the lines takes.
in_pace() {
    local try job start copy
    for try in 1 2 3; do
        late=
        "$@" write 10000 2
        "$lines" check 32 20000 <out >wrong || rc="$rc; wrong lines: $(cat wrong)"
        [ "$rc" = 0 ] && [ "$ms" -gt $((4000 * slow)) ] || return 0
        job=$ms
        "$@" write 10000 0
        start=$ms ms=$job
        copy=$(bare_copy 10000 2)
        echo "# 10,000 lines a second from 32 ranks for 2 s: $job ms; $start ms to start and end the job, $copy ms for a bare copy"
        [ "$rc" = 0 ] || return 0
        [ "$job" -gt $((start + 2 * copy * slow)) ] || return 0
        late="$job ms for lines of 2 s; a bare copy takes $copy ms, and the job without lines $start ms"
    done
}
