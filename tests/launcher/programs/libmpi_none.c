/* SPDX-License-Identifier: BSD-3-Clause */
/* libmpi_none.c: loaded into any program, it lets that look as if it used an MPI. */
extern int libmpi_none;
int libmpi_none;
