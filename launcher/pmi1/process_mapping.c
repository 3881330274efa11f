/* SPDX-License-Identifier: BSD-3-Clause */
/* process_mapping.c: format PMI_process_mapping. See pmi1_server.h. */
#include "launcher/pmi1/pmi1_server.h"

#include <stdio.h>

/* The length of the run of ranks on one host. */
static uint32_t process_mapping_row(const uint32_t *node_of, uint32_t size, uint32_t first)
{
    uint32_t n = 1;

    while (first + n < size && (!node_of || node_of[first + n] == node_of[first]))
        n++;
    return n;
}

int xr_pmi1_mapping(const uint32_t *node_of, uint32_t size, char *out, size_t len)
{
    int n = snprintf(out, len, "(vector");

    for (uint32_t i = 0; i < size;) {
        uint32_t ranks = process_mapping_row(node_of, size, i), first = node_of ? node_of[i] : 0, hosts = 0;
        do {
            i += ranks;
            hosts++;
        } while (i < size && node_of[i] == first + hosts && process_mapping_row(node_of, size, i) == ranks);
        n += snprintf((size_t)n < len ? out + n : NULL, (size_t)n < len ? len - (size_t)n : 0,
                      ",(%u,%u,%u)", first, hosts, ranks);
    }
    return n + snprintf((size_t)n < len ? out + n : NULL, (size_t)n < len ? len - (size_t)n : 0,
                        ")");
}
