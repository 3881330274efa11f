# SPDX-License-Identifier: BSD-3-Clause
# judge.sh: judge a command by its exit code. Sourced; expects work and bad.

# judge RC WHAT: with the end of $work/log if it failed
judge() {
    if [ "$1" = 0 ]; then
        echo "ok - $2"
    else
        echo "not ok - $2"
        tail -n 40 "$work/log" | sed 's/^/    /'
        bad=1
    fi
}
