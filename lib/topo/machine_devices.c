/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine_devices.c: find the GPUs and NICs among PCI devices. See topo_machine.h.
 *
 * GPU: a display controller of NVIDIA or AMD, an accelerator of AMD or Intel, Intel's display controller without a
 * screen, or a device of a GPU's driver. The VGA of a baseboard controller is of another vendor.
 * NIC: a network controller with an OS device and at least one port that is not down.
 */
#include "lib/topo/machine_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VENDOR_AMD = 0x1002,
    VENDOR_NVIDIA = 0x10de,
    VENDOR_INTEL = 0x8086,
    VENDOR_CRAY = 0x17db, /* Slingshot */
    VENDOR_HPE = 0x1590,
    DEVICE_CASSINI2 = 0x0371, /* HPE's Slingshot */
    CLASS_DISPLAY = 0x03,
    CLASS_DISPLAY_OTHER = 0x0380,
    CLASS_NETWORK = 0x02,
    CLASS_ETHERNET = 0x0200,
    CLASS_ACCELERATOR = 0x1200,
    PORT_ACTIVE = 4, /* ibv_port_state */
};

/* The drivers of GPUs, preferred first: a device of theirs has the name and a number. */
static const char *const gpu_drivers[] = {"cuda", "rsmi", "nvml"};
enum { GPU_DRIVERS = sizeof(gpu_drivers) / sizeof(*gpu_drivers) };

static void copy_text(char *to, size_t len, const char *from)
{
    snprintf(to, len, "%s", from ? from : "");
}

/* Return the range of the cores in a set. */
struct rk_core_range rk_machine_range(const struct rk_machine_loader *l, hwloc_const_cpuset_t set)
{
    struct rk_core_range range = {0, 0};

    for (uint32_t i = 0; set && i < l->m->ncores; i++) {
        if (!hwloc_bitmap_intersects(l->cores[i]->cpuset, set))
            continue;
        if (!range.n)
            range.first = i;
        range.n = i + 1 - range.first;
    }
    return range;
}

/* ---------------------------------------------------------------- sysfs */

/* Read a number or word of a file of this machine; returns false if there is none. */
static bool read_sysfs(const char *class, const char *name, const char *file, char *text, int len)
{
    char path[256];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "/sys/class/%s/%s/%s", class, name, file);
    f = fopen(path, "re");
    if (!f)
        return false;
    ok = fgets(text, len, f);
    fclose(f);
    text[ok ? strcspn(text, "\n") : 0] = '\0';
    return ok;
}

/* An interface in state "unknown" may work. */
static bool interface_down(const char *name)
{
    char text[32];

    return read_sysfs("net", name, "operstate", text, sizeof(text)) &&
           (strcmp(text, "down") == 0 || strcmp(text, "lowerlayerdown") == 0 || strcmp(text, "notpresent") == 0);
}

/* Return GB/s: the kernel has Gb/s for RDMA and Mb/s for interfaces. */
static double port_rate(const struct rk_device *d, const char *netdev)
{
    char text[64];

    if (d->kind != RK_NIC_ETHERNET && read_sysfs("infiniband", d->name, "ports/1/rate", text, sizeof(text)))
        return strtod(text, NULL) / 8;
    if (*netdev && read_sysfs("net", netdev, "speed", text, sizeof(text)) && *text != '-')
        return strtod(text, NULL) / 8000;
    return 0;
}

/* ------------------------------------------------------------- OS devices */

static hwloc_obj_t next_osdev(hwloc_obj_t pci, hwloc_obj_t last)
{
    for (hwloc_obj_t o = last ? last->next_sibling : pci->io_first_child; o; o = o->next_sibling) {
        if (o->type == HWLOC_OBJ_OS_DEVICE && o->name)
            return o;
    }
    return NULL;
}

/* Return the index of the driver in gpu_drivers, or GPU_DRIVERS. */
static int gpu_driver(const char *name)
{
    int i = 0;

    while (i < GPU_DRIVERS && strncmp(name, gpu_drivers[i], strlen(gpu_drivers[i])) != 0)
        i++;
    return i;
}

/* Take name, model and UUID from the OS devices of a GPU. Returns false without one of a GPU's driver. */
static bool name_gpu(hwloc_obj_t pci, struct rk_device *d)
{
    int best = GPU_DRIVERS;

    for (hwloc_obj_t o = NULL; (o = next_osdev(pci, o));) {
        int driver = gpu_driver(o->name);
        const char *uuid = hwloc_obj_get_info_by_name(o, "NVIDIAUUID");
        const char *model = hwloc_obj_get_info_by_name(o, "GPUModel");
        if (!uuid)
            uuid = hwloc_obj_get_info_by_name(o, "AMDUUID");
        if (uuid)
            copy_text(d->uuid, sizeof(d->uuid), uuid);
        if (model)
            copy_text(d->model, sizeof(d->model), model);
        if (driver < best) {
            best = driver;
            copy_text(d->name, sizeof(d->name), o->name);
        }
    }
    return best < GPU_DRIVERS;
}

/* An RDMA device without recorded states counts as active. */
static bool ports_down(hwloc_obj_t rdma)
{
    bool any = false;

    for (unsigned i = 0; i < rdma->infos_count; i++) {
        unsigned port;
        char end[8];
        if (sscanf(rdma->infos[i].name, "Port%u%7s", &port, end) != 2 || strcmp(end, "State") != 0)
            continue;
        if (atoi(rdma->infos[i].value) == PORT_ACTIVE)
            return false;
        any = true;
    }
    return any;
}

static bool is_slingshot(hwloc_obj_t pci, hwloc_obj_t o)
{
    return pci->attr->pcidev.vendor_id == VENDOR_CRAY ||
           (pci->attr->pcidev.vendor_id == VENDOR_HPE && pci->attr->pcidev.device_id == DEVICE_CASSINI2) ||
           (o->subtype && strcmp(o->subtype, "Slingshot") == 0);
}

/* Take name and kind from the OS devices of a NIC, RDMA first. Returns false without one that is up. */
static bool name_nic(const struct rk_machine_loader *l, hwloc_obj_t pci, struct rk_device *d)
{
    bool rdma = false, up = false, fabric = false, ethernet = pci->attr->pcidev.class_id == CLASS_ETHERNET;

    for (hwloc_obj_t o = NULL; (o = next_osdev(pci, o));) {
        if (o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
            if (rdma && up)
                continue;
            rdma = true;
            up = !ports_down(o);
            copy_text(d->name, sizeof(d->name), o->name);
        } else if (o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) {
            bool works = !l->live || !interface_down(o->name);
            fabric = fabric || is_slingshot(pci, o);
            if (!*d->netdev || (works && !rdma && !up))
                copy_text(d->netdev, sizeof(d->netdev), o->name);
            up = up || (works && !rdma);
        }
    }
    d->kind = fabric || (rdma && !(ethernet && *d->netdev)) ? RK_NIC_FABRIC : rdma ? RK_NIC_ROCE : RK_NIC_ETHERNET;
    if (!rdma)
        copy_text(d->name, sizeof(d->name), d->netdev);
    d->port_gbs = l->live && *d->name ? port_rate(d, d->netdev) : 0;
    return up && *d->name;
}

/* -------------------------------------------------------------------- PCI */

static bool is_gpu_class(const struct hwloc_pcidev_attr_s *pci)
{
    unsigned class = pci->class_id;

    switch (pci->vendor_id) {
    case VENDOR_NVIDIA:
        return class >> 8 == CLASS_DISPLAY;
    case VENDOR_AMD:
        return class >> 8 == CLASS_DISPLAY || class == CLASS_ACCELERATOR;
    case VENDOR_INTEL:
        return class == CLASS_DISPLAY_OTHER || class == CLASS_ACCELERATOR;
    default:
        return false;
    }
}

/* Read the UUID from the kernel's part of NVIDIA's driver, which libcuda is not needed for. */
static void read_uuid(struct rk_device *d)
{
    char path[64], line[128];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", d->pci);
    f = *d->uuid ? NULL : fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "GPU UUID: %47s", d->uuid) == 1)
            break;
    }
    if (f)
        fclose(f);
}

static bool load_bridges(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;
    size_t n = 0;

    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_bridge(l->t, o));)
        n++;
    m->bridge = calloc(n + 1, sizeof(*m->bridge));
    l->bridges = calloc(n + 1, sizeof(*l->bridges));
    if (!m->bridge || !l->bridges)
        return false;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_bridge(l->t, o));)
        l->bridges[m->nbridges++] = o;
    return true;
}

static uint32_t bridge_index(const struct rk_machine_loader *l, hwloc_obj_t o)
{
    for (uint32_t i = 0; i < l->m->nbridges; i++) {
        if (l->bridges[i] == o)
            return i;
    }
    return RK_TOPO_NONE;
}

static void link_bridges(struct rk_machine_loader *l)
{
    for (uint32_t i = 0; i < l->m->nbridges; i++) {
        const struct hwloc_bridge_attr_s *at = &l->bridges[i]->attr->bridge;
        bool host = at->upstream_type == HWLOC_OBJ_BRIDGE_HOST;
        l->m->bridge[i] = (struct rk_bridge){bridge_index(l, l->bridges[i]->parent), host,
                                             !host && at->upstream.pci.vendor_id == VENDOR_AMD};
    }
}

static void place_device(const struct rk_machine_loader *l, hwloc_obj_t o, struct rk_device *d)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(l->t, o);

    d->near = rk_machine_range(l, near ? near->cpuset : NULL);
    d->bridge = bridge_index(l, o->parent);
    if (o->type != HWLOC_OBJ_PCI_DEVICE)
        return;
    d->address = (uint64_t)o->attr->pcidev.domain << 32 | (uint64_t)o->attr->pcidev.bus << 16 |
                 (uint64_t)o->attr->pcidev.dev << 8 | o->attr->pcidev.func;
    snprintf(d->pci, sizeof(d->pci), "%04x:%02x:%02x.%01x", o->attr->pcidev.domain, o->attr->pcidev.bus,
             o->attr->pcidev.dev, o->attr->pcidev.func);
    d->link_gbs = (double)o->attr->pcidev.linkspeed;
    if (!*d->model)
        copy_text(d->model, sizeof(d->model), hwloc_obj_get_info_by_name(o, "PCIDevice"));
}

static bool add_device(struct rk_device **list, uint32_t *n, const struct rk_device *d)
{
    struct rk_device *more = realloc(*list, (*n + 1) * sizeof(*more));

    if (!more)
        return false;
    *list = more;
    more[(*n)++] = *d;
    return true;
}

static bool load_pci(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;

    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(l->t, o));) {
        struct rk_device d = {.address = 0};
        bool driver = name_gpu(o, &d);
        if (driver || is_gpu_class(&o->attr->pcidev)) {
            place_device(l, o, &d);
            d.nvidia = o->attr->pcidev.vendor_id == VENDOR_NVIDIA;
            if (l->live && d.nvidia)
                read_uuid(&d);
            if (!add_device(&m->gpu, &m->ngpus, &d))
                return false;
        } else if (o->attr->pcidev.class_id >> 8 == CLASS_NETWORK && name_nic(l, o, &d)) {
            place_device(l, o, &d);
            if (!add_device(&m->nic, &m->nnics, &d))
                return false;
        }
    }
    return true;
}

/* Devices of a driver without PCI, such as those behind a virtual bus: of the first driver that has any. */
static bool load_without_pci(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;
    uint32_t before = m->ngpus;

    for (int driver = 0; driver < GPU_DRIVERS && m->ngpus == before; driver++) {
        for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(l->t, o));) {
            struct rk_device d = {.address = UINT64_MAX};
            if (!o->name || gpu_driver(o->name) != driver || o->parent->type == HWLOC_OBJ_PCI_DEVICE)
                continue;
            copy_text(d.name, sizeof(d.name), o->name);
            copy_text(d.model, sizeof(d.model), hwloc_obj_get_info_by_name(o, "GPUModel"));
            d.nvidia = strcmp(gpu_drivers[driver], "rsmi") != 0;
            place_device(l, o, &d);
            if (!add_device(&m->gpu, &m->ngpus, &d))
                return false;
        }
    }
    return true;
}

static int by_pci_address(const void *a, const void *b)
{
    const struct rk_device *x = a, *y = b;

    return x->address != y->address ? (x->address < y->address ? -1 : 1) : strcmp(x->name, y->name);
}

bool rk_machine_load_devices(struct rk_machine_loader *l)
{
    struct rk_machine *m = l->m;

    if (!load_bridges(l))
        return false;
    link_bridges(l);
    if (!load_pci(l) || !load_without_pci(l))
        return false;
    if (m->ngpus)
        qsort(m->gpu, m->ngpus, sizeof(*m->gpu), by_pci_address);
    if (m->nnics)
        qsort(m->nic, m->nnics, sizeof(*m->nic), by_pci_address);
    return true;
}
