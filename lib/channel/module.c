/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c: find and load a module, and pass it the core's services. */
#include "config.h"

#include "lib/channel/module.h"
#include "lib/base/arg_error.h"
#include "lib/base/companion.h"
#include "lib/base/conf.h"
#include "lib/base/log.h"
#include "lib/channel/services.h"
#include "lib/mem/kind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

bool rk_ucx_is_wanted(void)
{
    static const char *const chosen[] = {"UCX_TLS", "UCX_NET_DEVICES", "UCX_MAX_EAGER_RAILS", "UCX_TCP_PORT_RANGE"};
    bool any = !(rk_conf.channels & RK_CONF_TCP) || rk_rdma_devices() ||
               (rk_device_kind && rk_conf.cuda_ucx == RK_CONF_CUDA_UCX_ON);

    for (size_t i = 0; i < RK_ARRAY_LEN(chosen) && !any; i++)
        any = rk_env(chosen[i]) != NULL;
    return any && rk_conf.channels & RK_CONF_UCX;
}

static void log_text(int level, const char *text)
{
    rk_log(level, "%s", text);
}

static rank_status_t fail_text(rank_status_t st, bool prints, const char *text)
{
    return prints ? rk_fail(st, "%s", text) : rk_fail_silent(st, "%s", text);
}

static const struct rk_services services = {
    .magic = RK_MODULE_MAGIC,
    .abi = RK_MODULE_ABI,
    .version = PACKAGE_VERSION,
    .sizes = RK_MODULE_SIZES,
    .conf = &rk_conf,
    .log_threshold = &rk_log_threshold,
    .log_text = log_text,
    .fail_text = fail_text,
    .env = rk_env,
    .peer_card = rk_peer_card,
    .engine_peer = rk_engine_peer,
    .find_peer = rk_engine_find_peer,
    .peer_connect = rk_peer_connect,
    .peer_try_connect = rk_peer_try_connect,
    .send_control = rk_send_control,
    .report_death = rk_engine_report_death,
    .why_unreached = rk_engine_why_unreached,
    .req_complete = rk_req_complete,
    .req_wait = rk_req_wait,
};

/* UCX sets handlers for SIGSEGV, SIGHUP and others while it loads: these belong to the application. */
static void *load_keeping_signals(const char *path)
{
    struct sigaction before[NSIG], after;
    void *module;

    for (int s = 1; s < NSIG; s++) {
        if (sigaction(s, NULL, &before[s]) < 0)
            before[s].sa_handler = SIG_ERR;
    }
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (int s = 1; s < NSIG; s++) {
        if (before[s].sa_handler != SIG_ERR && sigaction(s, NULL, &after) == 0 &&
            after.sa_handler != before[s].sa_handler)
            sigaction(s, &before[s], NULL);
    }
    return module;
}

static rank_status_t module_load(const char *path, const char *name, const void **out)
{
    void *module = load_keeping_signals(path);
    rk_module_entry_fn entry;
    const char *why;

    if (!module) {
        why = dlerror();
        return rk_fail(RANK_ERR_NOT_SUPPORTED, "cannot load the module %s: %s%s", name, why ? why : path,
                       strcmp(name, "ucx") == 0
                           ? "; it needs UCX 1.13 or newer (Debian: libucx0; LD_LIBRARY_PATH for one elsewhere)"
                           : "");
    }
    entry = (rk_module_entry_fn)dlsym(module, RK_MODULE_ENTRY);
    *out = entry ? entry(&services) : NULL;
    if (!*out) {
        return rk_fail(RANK_ERR_NOT_SUPPORTED, "%s was not built with this librank (%s); install both from one build, or point "
                       "RANK_MODULES to the right directory", path, PACKAGE_VERSION);
    }
    rk_debug("module %s loaded from %s", name, path);
    return RANK_OK;
}

rank_status_t rk_module_find(const char *name, char *path, size_t len)
{
    char file[128];

    snprintf(file, sizeof(file), "librank-%s.so", name);
    return rk_companion_find(file, path, len) ? RANK_OK : RANK_ERR_NOT_SUPPORTED;
}

rank_status_t rk_module_open(const char *name, const void **out)
{
    const char *why = "install librank whole or set RANK_MODULES to the directory that holds it";
    struct rk_companion_places places;
    char path[PATH_MAX], searched[3 * PATH_MAX];
    size_t len = 0;

    *out = NULL;
    if (rk_module_find(name, path, sizeof(path)) == RANK_OK)
        return module_load(path, name, out);
    rk_companion_list(&places);
    for (int i = 0; i < places.n; i++) {
        int n = snprintf(searched + len, sizeof(searched) - len, "%s%s", len ? ", " : "", places.dir[i]);
        if (n > 0 && (size_t)n < sizeof(searched) - len)
            len += (size_t)n;
    }
    searched[len] = '\0';
#ifndef HAVE_UCX
    if (strcmp(name, "ucx") == 0)
        why = "this librank was built without UCX: configure it with libucx-dev installed or with --with-ucx=DIR";
#endif
    return rk_fail(RANK_ERR_NOT_SUPPORTED, "the module %s is needed, but there is no librank-%s.so in %s; %s",
                   name, name, searched, why);
}

/* Has the program linked the CUDA runtime statically? Then its file has a section of kernels, also if it is stripped. */
static bool has_kernels(void)
{
    static const char name[] = ".nv_fatbin";
    char names[8192];
    ElfW(Ehdr) head;
    ElfW(Shdr) table;
    ssize_t n = 0;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (pread(fd, &head, sizeof(head), 0) == sizeof(head) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
        head.e_shentsize == sizeof(table) &&
        pread(fd, &table, sizeof(table), (off_t)(head.e_shoff + (uint64_t)head.e_shstrndx * sizeof(table))) == sizeof(table))
        n = pread(fd, names, table.sh_size < sizeof(names) ? table.sh_size : sizeof(names), (off_t)table.sh_offset);
    close(fd);
    return n > 0 && memmem(names, (size_t)n, name, sizeof(name)) != NULL;
}

/* Is it the driver, or a library that loads it at the first call of CUDA, perhaps after rank_init? */
static int brings_cuda(struct dl_phdr_info *library, size_t size, void *arg)
{
    static const char *const names[] = {"/libcuda.so", "/libcudart", "/libc10_cuda", "/libtorch_cuda"};

    (void)size;
    (void)arg;
    for (size_t i = 0; i < RK_ARRAY_LEN(names); i++) {
        if (library->dlpi_name && strstr(library->dlpi_name, names[i]))
            return 1;
    }
    return 0;
}

/* May the machine have a device, and the program use it? */
static bool uses_cuda(void)
{
    return access("/dev/nvidiactl", F_OK) == 0 && (dl_iterate_phdr(brings_cuda, NULL) || has_kernels());
}

rank_status_t rk_module_open_cuda(int mode)
{
    const void *module;
    const struct rk_kind *kind;
    char path[PATH_MAX], why[512];
    rank_status_t st;

    if (mode == RK_CONF_CUDA_OFF || (mode == RK_CONF_CUDA_AUTO && !uses_cuda()))
        return RANK_OK;
    if (mode == RK_CONF_CUDA_AUTO && rk_module_find("cuda", path, sizeof(path)) != RANK_OK) {
        rk_info("buffers in device memory are not supported: librank-cuda.so is not installed");
        return RANK_OK;
    }
    st = rk_module_open("cuda", &module);
    if (st)
        return st;
    kind = module;
    st = rk_kind_register(kind, mode == RK_CONF_CUDA_ON, why, sizeof(why));
    if (!st)
        return RANK_OK;
    rk_log(mode == RK_CONF_CUDA_ON ? RK_LOG_ERROR : RK_LOG_INFO, "memory of the kind %s is not supported here: %s", kind->name, why);
    return mode == RK_CONF_CUDA_ON ? st : RANK_OK;
}
