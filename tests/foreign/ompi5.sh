#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ompi5.sh: run programs of Open MPI 5 on one host; see foreign.sh.
PEER=ompi5 exec bash "$(dirname "$0")/foreign.sh"
