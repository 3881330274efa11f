#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpich4.sh: run programs of Debian's MPICH 4 on one host; see foreign.sh.
PEER=mpich4 exec bash "$(dirname "$0")/foreign.sh"
