#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ompi4_hosts.sh: programs of Debian's Open MPI 4 under xrun on several hosts; see foreign_hosts.sh.
PEER=ompi4 exec bash "$(dirname "$0")/foreign_hosts.sh"
