/*
 * symbols.h: which functions a program has in itself, as one does that a library was linked into statically.
 */
#ifndef XR_LAUNCHER_COMPAT_SYMBOLS_H
#define XR_LAUNCHER_COMPAT_SYMBOLS_H

#include <stdbool.h>

/*
 * Does the program at path define the function itself, as its table of symbols tells? One that was stripped does not
 * say, nor do scripts and whatever else is no ELF file of this machine's kind.
 */
bool xr_symbols_define(const char *path, const char *function);
/* The same for an open file. */
bool xr_symbols_define_in(int fd, const char *function);

#endif
