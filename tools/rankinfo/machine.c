/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c: print working channels, cores, GPUs and NICs of this machine. */
#include "lib/base/conf.h"
#include "lib/channel/module.h"
#include "tools/rankinfo/info.h"

#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---------------------------------------------------------------- channels */

/* If a process may not read its own memory (seccomp), it may not read another's. */
static const char *cma_state(void)
{
    char from = 'x', to = 0;
    struct iovec remote = {&from, 1}, local = {&to, 1};

    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1)
        return "large messages are copied straight between processes";
    return errno == ENOSYS ? "the kernel has no process_vm_readv: large messages are copied twice"
                           : "process_vm_readv is refused here: large messages are copied twice";
}

/* Print UCX's version, with the module loaded, and its devices to other hosts. */
static void print_ucx(FILE *out, const struct rk_channel *channel)
{
    char *rails = NULL, *line, *rest;
    size_t len = 0;
    FILE *text;
    void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
    const char *(*version)(void) =
        ucp ? (const char *(*)(void))dlsym(ucp, "ucp_get_version_string") : NULL;

    if (version)
        fprintf(out, "         loaded; UCX %s\n", version());
    else
        fprintf(out, "         loaded\n");
    if (ucp)
        dlclose(ucp);
    text = open_memstream(&rails, &len);
    if (!text)
        return;
    channel->rails(text); /* reports errors itself */
    fclose(text);
    for (line = strtok_r(rails, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fprintf(out, "         %s\n", line);
    free(rails);
}

void info_print_channels(FILE *out, bool load)
{
    const void *ucx;
    char path[PATH_MAX];

    fprintf(out, "channels\n");
    fprintf(out, "  self   built in%s\n",
            rk_conf.channels & RK_CONF_SELF ? "" : "; left out by RANK_CHANNELS");
    fprintf(out, "  shm    built in; %s%s\n", cma_state(),
            rk_conf.channels & RK_CONF_SHM ? "" : "; left out by RANK_CHANNELS");
    if (rk_module_find("ucx", path, sizeof(path))) {
        fprintf(out, "  ucx    not found: no module (built without UCX, or see RANK_MODULES)\n");
        return;
    }
    fprintf(out, "  ucx    %s%s\n", path,
            rk_conf.channels & RK_CONF_UCX ? "" : "; left out by RANK_CHANNELS");
    if (load && rk_module_open("ucx", &ucx) == RANK_OK)
        print_ucx(out, ucx);
    else if (load)
        fprintf(out, "         cannot be loaded\n");
}

/* ---------------------------------------------------------------- topology */

/* Print the nearest object with cores, to which a device is attached. */
static void print_near(FILE *out, hwloc_topology_t topology, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
    char cpus[256];

    if (!near || !near->cpuset)
        return;
    hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), near->cpuset);
    fprintf(out, ", near cpus %s", cpus);
}

/* Print devices of a kind with their location; returns their number. */
static int machine_print_devices(FILE *out, hwloc_topology_t topology, const char *label,
                         bool (*is)(hwloc_obj_t))
{
    int n = 0;

    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(topology, o)) != NULL;) {
        if (!is(o))
            continue;
        fprintf(out, "  %-9s%s", n++ ? "" : label, o->name ? o->name : "?");
        print_near(out, topology, o);
        fputc('\n', out);
    }
    return n;
}

static bool is_rdma(hwloc_obj_t o)
{
    return o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
}

static bool is_network(hwloc_obj_t o)
{
    return o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK;
}

/* One name a GPU: hwloc may list several interfaces; the driver's is a PCI device. */
static bool is_gpu(hwloc_obj_t o)
{
    return o->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC && o->name &&
           (strncmp(o->name, "cuda", 4) == 0 || strncmp(o->name, "rsmi", 4) == 0);
}

/* GPUs without a driver: PCI display controllers of class 0302 (3D). */
static int count_3d(hwloc_topology_t topology)
{
    int n = 0;

    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(topology, o)) != NULL;)
        n += o->attr->pcidev.class_id == 0x0302;
    return n;
}

static void print_topology(FILE *out, hwloc_topology_t topology)
{
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    hwloc_cpuset_t mine = hwloc_bitmap_alloc();
    char text[256];
    int gpus;

    fprintf(out, "  cores    %d (%d hardware threads) in %d package%s, %d NUMA node%s, %.1f GiB\n",
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU),
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE),
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE) == 1 ? "" : "s",
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE),
            hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) == 1 ? "" : "s",
            (double)hwloc_get_root_obj(topology)->total_memory / (1 << 30));
    if (mine && hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(mine)) {
        hwloc_bitmap_and(mine, mine, all);
        hwloc_bitmap_list_snprintf(text, sizeof(text), mine);
        fprintf(out, "  allowed  cpus %s\n", text);
    }
    hwloc_bitmap_free(mine);
    gpus = machine_print_devices(out, topology, "GPUs", is_gpu);
    if (!gpus && (gpus = count_3d(topology)) > 0)
        fprintf(out, "  GPUs     %d known by PCI only\n", gpus);
    else if (!gpus)
        fprintf(out, "  GPUs     none\n");
    if (!machine_print_devices(out, topology, "RDMA", is_rdma))
        fprintf(out, "  RDMA     none\n");
    if (!machine_print_devices(out, topology, "network", is_network))
        fprintf(out, "  network  no interface on PCI\n");
}

bool info_print_topology(FILE *out)
{
    hwloc_topology_t topology;
    bool ok;

    fprintf(out, "topology\n");
    if (hwloc_topology_init(&topology)) {
        fprintf(out, "  unknown: %s\n", strerror(errno));
        return false;
    }
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    ok = hwloc_topology_load(topology) == 0;
    if (ok)
        print_topology(out, topology);
    else
        fprintf(out, "  unknown: hwloc cannot read this machine: %s\n", strerror(errno));
    hwloc_topology_destroy(topology);
    return ok;
}
