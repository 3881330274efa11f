/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elf.h: list the shared libraries that a program needs (DT_NEEDED).
 */
#ifndef XR_LAUNCHER_COMPAT_ELF_H
#define XR_LAUNCHER_COMPAT_ELF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Return whether wanted accepts a library that the program at path itself needs (not those of its libraries).
 * Scripts and files that are no ELF file of this machine's kind need none.
 */
bool xr_elf_needs(const char *path, bool (*wanted)(const char *name), char *out, size_t len);
/* The same for an open file. */
bool xr_elf_fd_needs(int fd, bool (*wanted)(const char *name), char *out, size_t len);

#endif
