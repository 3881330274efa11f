#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ompi4_hosts.sh: run programs of Debian's Open MPI 4; see foreign_hosts.sh.
PEER=ompi4 exec bash "$(dirname "$0")/foreign_hosts.sh"
