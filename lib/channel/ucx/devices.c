/* SPDX-License-Identifier: BSD-3-Clause */
/* devices.c: parse the transports and devices that a UCX context prints. */
#include "lib/channel/ucx/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rk_ucx_next_device(const char **text, size_t *len)
{
    for (const char *line = *text; line && *line;) {
        size_t all = strcspn(line, "\n");
        const char *end = line + all, *name = memmem(line, all, " -- ", 4);

        *text = *end ? end + 1 : end;
        if (name && memmem(line, (size_t)(name - line), "resource", 8)) {
            *len = (size_t)(end - name - 4);
            return name + 4;
        }
        line = *text;
    }
    return NULL;
}

static bool begins(const char *name, const char *const *with)
{
    for (; *with; with++) {
        if (strncmp(name, *with, strlen(*with)) == 0)
            return true;
    }
    return false;
}

static bool lists_any(const char *text, const char *const *with)
{
    const char *name;
    size_t len;

    while ((name = rk_ucx_next_device(&text, &len)) != NULL) {
        if (begins(name, with))
            return true;
    }
    return false;
}

bool rk_ucx_lists_rdma(const char *text)
{
    return lists_any(text, (const char *const[]){"rc_", "dc_", "ugni_", "srd/", NULL});
}

bool rk_ucx_lists_tcp(const char *text)
{
    return lists_any(text, (const char *const[]){"tcp/", NULL});
}

static bool is_word(const char *at, size_t len, const char *word)
{
    if (len && *at == '\\') { /* the very transport, instead of an alias */
        at++;
        len--;
    }
    return len == strlen(word) && strncmp(at, word, len) == 0;
}

char *rk_ucx_tls_without_tcp(const char *tls)
{
    char *out = malloc(strlen(tls) + sizeof(",tcp"));
    size_t used = 0;

    if (!out)
        return NULL;
    if (*tls == '^') {
        sprintf(out, "%s%stcp", tls, tls[1] ? "," : "");
        return out;
    }
    while (*tls) {
        size_t len = strcspn(tls, ",");

        if (is_word(tls, len, "all")) {
            strcpy(out, "^tcp");
            return out;
        }
        if (len && !is_word(tls, len, "tcp")) {
            if (used)
                out[used++] = ',';
            memcpy(out + used, tls, len);
            used += len;
        }
        tls += len + (tls[len] == ',');
    }
    out[used] = '\0';
    return out;
}
