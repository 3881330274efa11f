#!/bin/bash
# order.sh TEST...: the same names in an order in which a machine with few cores is through with them soon: those that wait
# most of their time (scripts, with their hosts and time-outs) evenly among those that compute, each kind in its own order.
# LONG: names of those that take long.

printf '%s\n' "$@" | awk -v long=" ${LONG:-} " '
function waits(name) { return name ~ /\.sh$/ && name !~ /\/(lint|bench|install|examples|coll|foreign)\// }
function seconds(name) { return index(long, " " name " ") ? 60 : name ~ /\.sh$/ ? 10 : name ~ /\.mp$/ ? 8 : 2 } # about
NF { name[++n] = $1; all[waits($1)] += seconds($1) }
END {
    for (i = 1; i <= n; i++) {
        kind = waits(name[i])
        printf "%.6f %s\n", (before[kind] + seconds(name[i]) / 2) / all[kind], name[i]
        before[kind] += seconds(name[i])
    }
}' | LC_ALL=C sort -s -n -k 1,1 | cut -d ' ' -f 2 | paste -s -d ' '
