#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ompi4.sh: run programs of Debian's Open MPI 4 on one host; see foreign.sh.
PEER=ompi4 exec bash "$(dirname "$0")/foreign.sh"
