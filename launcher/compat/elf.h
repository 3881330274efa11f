/*
 * elf.h: which shared libraries a program names.
 */
#ifndef XR_LAUNCHER_COMPAT_ELF_H
#define XR_LAUNCHER_COMPAT_ELF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Look through the libraries that the program at path names itself (not those
 * that they need) for one that wanted accepts. Scripts and whatever else is no
 * ELF file of this machine's kind name none.
 */
bool xr_needed_find(const char *path, bool (*wanted)(const char *name), char *out, size_t len);
/* The same for an open file. */
bool xr_needed_find_in(int fd, bool (*wanted)(const char *name), char *out, size_t len);

#endif
