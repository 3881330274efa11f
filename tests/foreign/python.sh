#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# python.sh: mpi4py on each of the other MPI libraries under xrun; see foreign.sh.
PYTHON=yes exec bash "$(dirname "$0")/foreign.sh"
