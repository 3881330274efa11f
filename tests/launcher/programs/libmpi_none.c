/* SPDX-License-Identifier: BSD-3-Clause */
/* libmpi_none.c: make any program that loads it seem to use an MPI. */
extern int libmpi_none;
int libmpi_none;
