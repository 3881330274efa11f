#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# python.sh: run mpi4py on each of the other MPI libraries; see foreign.sh.
PYTHON=yes exec bash "$(dirname "$0")/foreign.sh"
