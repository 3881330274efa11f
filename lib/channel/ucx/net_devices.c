/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_devices.c: make UCX's list of network devices from RANK_NICS. See devices.h.
 *
 * UCX names a port of an RDMA device, such as mlx5_0:1, and older versions take no patterns.
 */
#include "lib/channel/ucx/devices.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static void put_word(FILE *to, bool *any, const char *name, size_t len, const char *port)
{
    fprintf(to, "%s%.*s%s%s", *any ? "," : "", (int)len, name, port ? ":" : "", port ? port : "");
    *any = true;
}

/* Put each port of an RDMA device. Returns false if there is no such device. */
static bool put_ports(FILE *to, bool *any, const char *name, size_t len, const char *sysfs)
{
    const struct dirent *port;
    char path[512];
    bool found = false;
    DIR *dir;

    if (snprintf(path, sizeof(path), "%s/class/infiniband/%.*s/ports", sysfs, (int)len, name) >= (int)sizeof(path))
        return false;
    dir = memchr(name, '/', len) ? NULL : opendir(path);
    if (!dir)
        return false;
    while ((port = readdir(dir)) != NULL) {
        if (port->d_name[0] == '.')
            continue;
        put_word(to, any, name, len, port->d_name);
        found = true;
    }
    closedir(dir);
    return found;
}

char *rk_ucx_net_devices(const char *nics, const char *sysfs)
{
    char *words = NULL;
    size_t size, len;
    FILE *to = open_memstream(&words, &size);
    bool any = false;

    for (; to && *nics; nics += len + (nics[len] == ',')) {
        len = strcspn(nics, ",");
        if (len && (memchr(nics, ':', len) || !put_ports(to, &any, nics, len, sysfs)))
            put_word(to, &any, nics, len, NULL);
    }
    return to && fclose(to) == 0 ? words : NULL;
}

/* Return whether one of the words of a comma list is the device of a transport, such as eth0 of tcp/eth0. */
static bool list_has(const char *words, const char *device, size_t device_len)
{
    for (size_t len; *words; words += len + (words[len] == ',')) {
        len = strcspn(words, ",");
        if (len == device_len && memcmp(words, device, len) == 0)
            return true;
    }
    return false;
}

bool rk_ucx_has_net_device(const char *text, const char *words)
{
    const char *name, *slash;
    size_t len;

    while ((name = rk_ucx_next_device(&text, &len)) != NULL) {
        slash = memchr(name, '/', len);
        if (slash && list_has(words, slash + 1, len - (size_t)(slash + 1 - name)))
            return true;
    }
    return false;
}
