/*
 * texts.h: which texts a program carries where its constants lie. They stay when it is stripped.
 */
#ifndef XR_LAUNCHER_COMPAT_TEXTS_H
#define XR_LAUNCHER_COMPAT_TEXTS_H

#include <stdbool.h>

/*
 * Does the program at path carry a text that begins so? Scripts and whatever else is no ELF file of this machine's kind
 * carry none, and what lies so far behind that it takes long to be found is not seen.
 */
bool xr_texts_begin(const char *path, const char *text);
/* The same for an open file. */
bool xr_texts_begin_in(int fd, const char *text);

#endif
