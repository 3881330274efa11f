#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpich5_hosts.sh: programs of MPICH 5 under xrun on several hosts; see foreign_hosts.sh.
PEER=mpich5 exec bash "$(dirname "$0")/foreign_hosts.sh"
