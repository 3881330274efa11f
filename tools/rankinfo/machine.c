/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c: print working channels of this machine. */
#include "lib/base/conf.h"
#include "lib/channel/module.h"
#include "lib/mem/kind.h"
#include "tools/rankinfo/info.h"

#include <dlfcn.h>
#include <errno.h>
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

static void print_ucx_module(FILE *out, bool load)
{
    const void *ucx;
    char path[PATH_MAX];

    if (rk_module_find("ucx", path, sizeof(path))) {
        fprintf(out, "  ucx    not found: no module (built without UCX, or see RANK_MODULES)\n");
        return;
    }
    fprintf(out, "  ucx    %s%s\n", path,
            !(rk_conf.channels & RK_CONF_UCX) ? "; left out by RANK_CHANNELS"
            : rk_ucx_is_wanted()              ? ""
                                              : "; for RDMA, of which there is none");
    if (load && rk_module_open("ucx", &ucx) == RANK_OK)
        print_ucx(out, ucx);
    else if (load)
        fprintf(out, "         cannot be loaded\n");
}

/* Kinds of memory that buffers may lie in. */
static void print_kinds(FILE *out, bool load)
{
    const struct rk_kind *kind = NULL;
    char path[PATH_MAX], text[512] = "";
    const void *module;

    fprintf(out, "memory\n  host   built in\n");
    if (rk_module_find("cuda", path, sizeof(path))) {
        fprintf(out, "  cuda   not found: no module (see RANK_MODULES)\n");
        return;
    }
    fprintf(out, "  cuda   %s%s\n", path, rk_conf.cuda == RK_CONF_CUDA_OFF ? "; left out by RANK_CUDA" : "");
    if (load && rk_module_open("cuda", &module) == RANK_OK)
        kind = module;
    if (kind && kind->open(true, text, sizeof(text)) == RANK_OK)
        kind->describe(text, sizeof(text));
    if (load)
        fprintf(out, "         %s\n", kind ? text : "cannot be loaded");
}

void info_print_channels(FILE *out, bool load)
{
    fprintf(out, "channels\n");
    fprintf(out, "  self   built in%s\n",
            rk_conf.channels & RK_CONF_SELF ? "" : "; left out by RANK_CHANNELS");
    fprintf(out, "  shm    built in; %s%s\n", cma_state(),
            rk_conf.channels & RK_CONF_SHM ? "" : "; left out by RANK_CHANNELS");
    fprintf(out, "  tcp    built in%s\n", rk_conf.channels & RK_CONF_TCP ? "" : "; left out by RANK_CHANNELS");
    print_ucx_module(out, load);
    print_kinds(out, load);
}
