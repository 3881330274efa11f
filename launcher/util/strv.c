/* SPDX-License-Identifier: BSD-3-Clause */
/* strv.c: see strv.h. */
#include "launcher/util/strv.h"

#include <stdlib.h>
#include <string.h>

size_t xr_strv_count(char *const *v)
{
    size_t n = 0;

    while (v && v[n])
        n++;
    return n;
}

bool xr_strv_add(char ***v, const char *s)
{
    size_t n = xr_strv_count(*v);
    char *copy = strdup(s), **longer = copy ? realloc(*v, (n + 2) * sizeof(*longer)) : NULL;

    if (!longer) {
        free(copy);
        return false;
    }
    longer[n] = copy;
    longer[n + 1] = NULL;
    *v = longer;
    return true;
}

void xr_strv_free(char **v)
{
    for (size_t i = 0; v && v[i]; i++)
        free(v[i]);
    free(v);
}
