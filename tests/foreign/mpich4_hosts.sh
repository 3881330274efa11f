#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpich4_hosts.sh: run programs of Debian's MPICH 4; see foreign_hosts.sh.
PEER=mpich4 exec bash "$(dirname "$0")/foreign_hosts.sh"
