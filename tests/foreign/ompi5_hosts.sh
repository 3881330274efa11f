#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ompi5_hosts.sh: run programs of Open MPI 5 on hosts; see foreign_hosts.sh.
PEER=ompi5 exec bash "$(dirname "$0")/foreign_hosts.sh"
