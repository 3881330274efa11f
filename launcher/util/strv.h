/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strv.h: handle string vectors: NULL-terminated arrays of allocated strings.
 */
#ifndef XR_LAUNCHER_UTIL_STRV_H
#define XR_LAUNCHER_UTIL_STRV_H

#include <stdbool.h>
#include <stddef.h>

/* Return the number of strings; 0 if v is NULL. */
size_t xr_strv_count(char *const *v);

/* Append a copy of s. *v may be NULL at first. Returns false if out of memory; then *v is unchanged. */
bool xr_strv_add(char ***v, const char *s);

/* Free the strings and the array. No-op if NULL. */
void xr_strv_free(char **v);

#endif
