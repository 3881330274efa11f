#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpich5.sh: run programs of MPICH 5 on one host; see foreign.sh.
PEER=mpich5 exec bash "$(dirname "$0")/foreign.sh"
