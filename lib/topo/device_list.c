/* SPDX-License-Identifier: BSD-3-Clause */
/* device_list.c: read device numbers, such as "0,2" or "0-3,7". See pair.h. */
#include "lib/topo/pair.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST_DEVICE = 1023 };

static bool read_device(const char **at, unsigned long *out)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    *out = strtoul(*at, &end, 10);
    *at = end;
    return *out <= MOST_DEVICE;
}

bool rk_device_list(const char *text, uint32_t **list, uint32_t *n)
{
    uint32_t *all = malloc((MOST_DEVICE + 1) * sizeof(*all)), count = 0;
    bool ok = all != NULL;

    for (const char *at = text; ok; at++) {
        unsigned long first, last;
        ok = read_device(&at, &first);
        last = first;
        if (ok && *at == '-') {
            at++;
            ok = read_device(&at, &last) && last >= first;
        }
        for (; ok && first <= last; first++) {
            ok = count <= MOST_DEVICE;
            if (ok)
                all[count++] = (uint32_t)first;
        }
        ok = ok && (!*at || *at == ',');
        if (ok && !*at)
            break;
    }
    if (!ok) {
        free(all);
        return false;
    }
    *list = all;
    *n = count;
    return true;
}
