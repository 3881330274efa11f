/* SPDX-License-Identifier: BSD-3-Clause */
/* device_text.c: read the devices of a rank from text. See device_text.h. */
#include "lib/topo/device_text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The rest of a text, and whether all before it was well formed. */
struct device_reader {
    const char *at;
    bool ok;
};

/* Take the bytes up to one of the separators. Returns their number; *from is their start. */
static size_t take_field(struct device_reader *r, char end, const char **from)
{
    size_t len = strcspn(r->at, "|;");

    *from = r->at;
    if (r->at[len] != end)
        r->ok = false;
    r->at += len + (r->at[len] != '\0');
    return len;
}

static int32_t take_int(struct device_reader *r, char end)
{
    const char *from;
    char *stop;
    size_t len = take_field(r, end, &from);
    long value = len ? strtol(from, &stop, 10) : 0;

    if (!len || stop != from + len || value < -1 || value > INT32_MAX)
        r->ok = false;
    return r->ok ? (int32_t)value : -1;
}

/* A text that is too long is cut. */
static void take_text(struct device_reader *r, char end, char *to, size_t size)
{
    const char *from;
    size_t len = take_field(r, end, &from);

    len = len < size ? len : size - 1;
    memcpy(to, from, len);
    to[len] = '\0';
}

/* A list that is too long is cut behind a whole item. */
static void take_list(struct device_reader *r, char end, char *to, size_t size)
{
    const char *from;
    size_t len = take_field(r, end, &from);

    if (len >= size) {
        len = size - 1;
        while (len && from[len] != ',')
            len--;
    }
    memcpy(to, from, len);
    to[len] = '\0';
}

/* Return the place of a GPU in CUDA_VISIBLE_DEVICES, or -1. CUDA uses no word behind the first that is no GPU. */
static int32_t visible_place(const rank_device_gpu_t *gpu, const char *visible)
{
    int32_t place = 0;

    for (size_t len; *visible; place++, visible += len + (visible[len] == ',')) {
        char *end;
        long number = strtol(visible, &end, 10);
        len = strcspn(visible, ",");
        if (end == visible + len && len ? number == gpu->number
                                        : len > 4 && strncasecmp(gpu->uuid, visible, len) == 0)
            return place;
        if (!len || *visible == '-')
            return -1;
    }
    return -1;
}

static void take_gpu(struct device_reader *r, const char *visible, rank_device_t *out)
{
    rank_device_gpu_t gpu = {.number = take_int(r, '|'), .numa = take_int(r, '|')};

    take_text(r, '|', gpu.pci, sizeof(gpu.pci));
    take_text(r, '|', gpu.uuid, sizeof(gpu.uuid));
    take_text(r, '|', gpu.name, sizeof(gpu.name));
    take_text(r, '|', gpu.path, sizeof(gpu.path));
    take_text(r, ';', gpu.reason, sizeof(gpu.reason));
    gpu.ordinal = gpu.number >= 0 && visible ? visible_place(&gpu, visible) : gpu.number;
    if (out->ngpus < RANK_DEVICE_MAX)
        out->gpu[out->ngpus] = gpu;
    out->ngpus++;
}

static void take_nic(struct device_reader *r, rank_device_t *out)
{
    rank_device_nic_t nic = {.rdma = take_int(r, '|'), .numa = take_int(r, '|')};

    take_text(r, '|', nic.pci, sizeof(nic.pci));
    take_text(r, '|', nic.name, sizeof(nic.name));
    take_text(r, '|', nic.netdev, sizeof(nic.netdev));
    take_text(r, '|', nic.path, sizeof(nic.path));
    take_text(r, ';', nic.reason, sizeof(nic.reason));
    if (out->nnics < RANK_DEVICE_MAX)
        out->nic[out->nnics] = nic;
    out->nnics++;
}

bool rk_device_text(const char *text, const char *visible, rank_device_t *out)
{
    struct device_reader r = {text, true};

    while (r.ok && *r.at) {
        const char *item = r.at;
        size_t len = strcspn(item, "=");
        if (!item[len])
            return false;
        r.at += len + 1;
        if (len == 4 && memcmp(item, "numa", len) == 0)
            out->numa = take_int(&r, ';');
        else if (len == 4 && memcmp(item, "cpus", len) == 0)
            take_list(&r, ';', out->cpus, sizeof(out->cpus));
        else if (len == 3 && memcmp(item, "gpu", len) == 0)
            take_gpu(&r, visible, out);
        else if (len == 3 && memcmp(item, "nic", len) == 0)
            take_nic(&r, out);
        else
            return false;
    }
    return r.ok;
}
