#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpich5_hosts.sh: run programs of MPICH 5 on hosts; see foreign_hosts.sh.
PEER=mpich5 exec bash "$(dirname "$0")/foreign_hosts.sh"
