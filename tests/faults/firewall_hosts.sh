#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# firewall_hosts.sh: end first contacts that a firewall drops or refuses.
# It names address, port and remedy within 15 s, at a rank that sends and at one that waits.
. "$(dirname "$0")/../inside.sh"
inside 2 "a firewall between two hosts"
. "$top_srcdir/tests/launcher/cases.sh"
mute=$top_builddir/tests/faults/silent_peer

# firewall HOST VERDICT: new connections that come by the network, from now on
firewall() {
    on "$1" nft -f - <<END
table inet firewall
delete table inet firewall
table inet firewall {
  chain in {
    type filter hook input priority -10;
    iif "eth0" tcp flags & (syn | ack) == syn $2;
  }
}
END
}

for verdict in drop "reject with tcp reset"; do
    for program in "$top_builddir/rankbench lat -b 8 -e 8" "$mute"; do
        rm -f go
        : >out
        : >err
        on hosta env XDG_RUNTIME_DIR=/run "$XRUN" -q -n 2 --host hosta:1,hostb:1 --timeout 60 \
            sh -c "echo ready; until [ -e $PWD/go ]; do sleep 0.02; done; exec $program" >out 2>err </dev/null &
        xpid=$!
        until_true 20 ready 2 || bad "start" "$(cat out err)"
        firewall hosta "$verdict"
        firewall hostb "$verdict"
        began=${EPOCHREALTIME/./}
        touch go
        what="$verdict, ${program##*/}"
        if until_true 30 grep -qE 'rank [01] cannot be reached by tcp \([0-9.]+:[0-9]+: .*RANK_NICS' err; then
            ms=$(((${EPOCHREALTIME/./} - began) / 1000))
            [ $ms -lt $((15000 * slow)) ] && good "$what: after $ms ms" || bad "$what: not within 15 s" "after $ms ms"
        else
            bad "$what: no reason" "$(cat out err)"
        fi
        until_true 10 ended || bad "$what: the job ends" "$(cat out err)"
        on hosta pkill -9 -x xrun
        wait "$xpid"
        firewall hosta accept
        firewall hostb accept
    done
done
echo "# firewall_hosts: $passed passed, $failed failed"
[ $failed -eq 0 ]
exit
