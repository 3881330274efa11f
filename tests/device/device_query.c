/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_query.c: print the devices of each rank, as rankinfo --topo does.
 *
 * device_pairs.sh runs it on recorded machines and compares. A line is the rank, its cpus, and for each device its
 * name, path and reason. With --ordinals: the rank, and the ordinal and the number of each of its GPUs.
 */
#include "tests/mp/mp.h"

#include <string.h>

/* A struct of an older or newer program: bytes behind its size stay, those behind ours are not written. */
static void check_sizes(const rank_device_t *whole)
{
    struct {
        rank_device_t device;
        char more[64];
    } other;

    for (size_t size = 0; size <= sizeof(other); size += 8) {
        memset(&other, 0x5a, sizeof(other));
        other.device.size = size;
        if (size < offsetof(rank_device_t, cpus)) {
            MP_STATUS(rank_device_query(&other.device), RANK_ERR_ARG);
            MP_CHECK_EQ(other.device.ngpus, 0x5a5a5a5a);
            continue;
        }
        MP_OK(rank_device_query(&other.device));
        MP_CHECK_EQ(other.device.size, size);
        for (size_t i = sizeof(size); i < sizeof(other); i++) {
            char wanted = i < size && i < sizeof(*whole) ? ((const char *)whole)[i] : 0x5a;
            MP_CHECK_EQ(((const char *)&other)[i], wanted);
        }
    }
}

static void print_devices(const struct mp *mp, const rank_device_t *d)
{
    char line[2048];
    size_t len = (size_t)snprintf(line, sizeof(line), "%d %s", mp->rank, d->cpus);

    for (int i = 0; i < d->ngpus; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "; GPU %d %s, %s", d->gpu[i].number, d->gpu[i].path, d->gpu[i].reason);
    for (int i = 0; i < d->nnics; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "; NIC %s %s, %s", d->nic[i].name, d->nic[i].path, d->nic[i].reason);
    printf("%s\n", line);
}

static void print_ordinals(const struct mp *mp, const rank_device_t *d)
{
    char line[256];
    size_t len = (size_t)snprintf(line, sizeof(line), "%d", mp->rank);

    for (int i = 0; i < d->ngpus; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, " %d=%d", d->gpu[i].ordinal, d->gpu[i].number);
    printf("%s\n", line);
}

int main(int argc, char **argv)
{
    rank_device_t device = RANK_DEVICE_INIT, again = RANK_DEVICE_INIT;
    struct mp mp;

    MP_STATUS(rank_device_query(&device), RANK_ERR_STATE);
    mp_start(&mp, &argc, argv);
    MP_STATUS(rank_device_query(NULL), RANK_ERR_ARG);
    if (mp_flag(argc, argv, "--missing")) {
        MP_STATUS(rank_device_query(&device), RANK_ERR_NOT_SUPPORTED);
        MP_CHECK_EQ(device.ngpus, 0);
        mp_end(&mp);
        return 0;
    }
    MP_OK(rank_device_query(&device));
    MP_OK(rank_device_query(&again));
    MP_CHECK(memcmp(&device, &again, sizeof(device)) == 0);
    check_sizes(&device);
    if (mp_flag(argc, argv, "--ordinals"))
        print_ordinals(&mp, &device);
    else
        print_devices(&mp, &device);
    mp_end(&mp);
    return 0;
}
