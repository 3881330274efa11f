# SPDX-License-Identifier: BSD-3-Clause
# salloc_common.sh: start jobs by salloc and sbatch from hosta, check leftovers.
# Those on the hosts in $here. Sourced inside the hosts (inside_slurm), with $here set.
. "$top_srcdir/tests/launcher/cases.sh"
. "$top_srcdir/tests/left.sh"
mp=$top_builddir/tests/mp

# What waits for its end has a name of its own, since a host is kept by a sleep.
cp "$(command -v sleep)" rest
rest=$PWD/rest
remember $here
stays() { left; on hosta squeue -h 2>/dev/null; }
tidy() { on hosta scancel -u root; sweep; }
patience=20
within() { [ "$ms" -le $(($2 * slow)) ] && good "$1: in time" || bad "$1: in time" "$ms ms, not $2"; }

# salloc LIMIT "SALLOC'S WORDS" COMMAND...: as the user's shell there, with out, err, rc and ms set
salloc() {
    local limit=$(($1 * slow)) words=$2 t0=${EPOCHREALTIME/./}
    shift 2
    # shellcheck disable=SC2086 # words
    on hosta timeout -k 5 "$limit" salloc -Q $words "$@" >out 2>err </dev/null
    rc=$?
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
begin_in() { # "SALLOC'S WORDS" COMMAND...: in the background
    local words=$1
    shift
    : >out
    : >err
    # shellcheck disable=SC2086 # words
    on hosta salloc -Q $words "$@" >out 2>err </dev/null &
    xpid=$!
}
finish_in() { # LIMIT in s
    local t0=${EPOCHREALTIME/./}
    if until_true "$1" ended; then wait "$xpid"; rc=$?; else rc=hung; fi
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
# batch "SBATCH'S WORDS" LINE...: a script of these lines; job is its number, its output goes into out and err
batch() {
    local words=$1
    shift
    printf '%s\n' '#!/bin/bash' "$@" >script
    : >out
    : >err
    # shellcheck disable=SC2086 # words
    job=$(on hosta sbatch --parsable -D "$PWD" -o "$PWD/out" -e "$PWD/err" $words script)
}
over() { case $(on hosta squeue -h -j "$job" -o %T 2>/dev/null) in '' | COMPLETED | FAILED | CANCELLED) ;; *) return 1 ;; esac; }
batch_ends() { # LIMIT in s: rc is Slurm's report of its end
    local t0=${EPOCHREALTIME/./}
    rc=hung
    until_true "$1" over && rc=$(on hosta scontrol show job -o "$job" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p')
    ms=$(((${EPOCHREALTIME/./} - t0) / 1000))
}
finish() {
    echo "# salloc: $passed passed, $failed failed"
    [ $failed -eq 0 ]
    exit
}
