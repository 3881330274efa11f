/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h: load channels and kinds of memory from shared objects.
 *
 * Room: the channels: self (here), shm, tcp, ucx, and the loader of modules.
 * Callers: lib/core through struct rk_channel (lib/core/channel.h); lib/world opens them.
 * Never: matches messages; has code for teams.
 * Tests: tests/unit/fifo_test.c, tests/unit/proto_table_test.c, tests/model, tests/mp/p2p_*, tests/mp/rma.
 */
#ifndef RK_CHANNEL_MODULE_H
#define RK_CHANNEL_MODULE_H

#include "lib/core/channel.h"

#include <dirent.h>

/* Does this machine have devices with RDMA, for which UCX would be loaded? */
RK_INLINE bool rk_rdma_devices(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    const struct dirent *d;
    bool any = false;

    if (!dir)
        return false;
    while (!any && (d = readdir(dir)) != NULL)
        any = d->d_name[0] != '.';
    closedir(dir);
    return any;
}

/*
 * Do ranks of several hosts use UCX? Beside tcp it is for RDMA, for device memory, whose copies it overlaps, and for users
 * that choose its transports, devices, number of links or ports.
 */
bool rk_ucx_is_wanted(void);

/*
 * Load librank-NAME.so. It stays loaded; later calls return the same struct. RANK_ERR_NOT_SUPPORTED with a line
 * that names the reason: no file, a library that it needs, or a file of another version of the library.
 */
rank_status_t rk_module_open(const char *name, const void **out);

/* Path of its file, without loading it; RANK_ERR_NOT_SUPPORTED, silently, if there is none. */
rank_status_t rk_module_find(const char *name, char *path, size_t len);

/* Do what RANK_CUDA (an RK_CONF_CUDA value) sets: load librank-cuda.so, and register its kind of memory (lib/mem/kind.h). */
rank_status_t rk_module_open_cuda(int mode);

#endif
