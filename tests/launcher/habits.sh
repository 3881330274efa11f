#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# habits.sh: start jobs with the options of mpirun, mpiexec and srun.
. "$(dirname "$0")/cases.sh"

printf 'localhost slots = 2 sockets=1 binding=user:0 ifhn=lo\n' >machines
run 10 -machinefile machines -n2 --bind-to none --oversubscribe --allow-run-as-root -l -genv A 'one two' -env B 3 \
    sh -c 'echo "$A $B"' : -n2 sh -c 'echo "$A $B."'
sort -o out out
same "options of other launchers" "[0] one two 3
[1] one two 3
[2] one two .
[3] one two ."
check "a hostfile's word without effect is named" 0 'machines:1: binding= has no effect; --bind'
check "and another one" 0 'machines:1: ifhn= has no effect; --if'
run 10 -host localhost -ppn 3 echo yes; same "-ppn makes the ranks of a host" "yes
yes
yes"
refused "an option without meaning here" 2 'there is no option --mca; .*-x OMPI_MCA_NAME=VALUE' --mca btl tcp true

echo "# habits: $passed passed, $failed failed"
[ "$failed" = 0 ]
