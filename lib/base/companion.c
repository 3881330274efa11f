/* SPDX-License-Identifier: BSD-3-Clause */
/* companion.c: see companion.h. */
#include "lib/base/companion.h"
#include "lib/base/conf.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char pmix_path[] = "PMIX_MCA_mca_base_component_path";

static void add_place(struct rk_companion_places *p, const char *dir, int dir_len, const char *below)
{
    if (snprintf(p->dir[p->n], PATH_MAX, "%.*s%s", dir_len, dir, below) < PATH_MAX)
        p->n++;
}

void rk_companion_list(struct rk_companion_places *p)
{
    char exe[PATH_MAX];
    Dl_info self;
    const char *slash;
    ssize_t n;

    p->n = 0;
    if (rk_conf.modules && *rk_conf.modules) {
        add_place(p, rk_conf.modules, PATH_MAX, "");
        return;
    }
    if (dladdr((const void *)pmix_path, &self) && self.dli_fname && (slash = strrchr(self.dli_fname, '/')) != NULL &&
        strncmp(slash + 1, "librank.so", strlen("librank.so")) == 0) {
        int len = (int)(slash - self.dli_fname);
        add_place(p, self.dli_fname, len, "/librank");
        add_place(p, self.dli_fname, len, "");
    } else if ((n = readlink("/proc/self/exe", exe, sizeof(exe) - 1)) > 0) {
        exe[n] = '\0';
        slash = strrchr(exe, '/');
        add_place(p, exe, slash ? (int)(slash - exe) : 0, "/../lib/librank");
    }
    add_place(p, RK_MODULEDIR, PATH_MAX, "");
}

bool rk_companion_find(const char *name, char *path, size_t len)
{
    struct rk_companion_places places;

    rk_companion_list(&places);
    for (int i = 0; i < places.n; i++) {
        int n = snprintf(path, len, "%s/%s", places.dir[i], name);
        if (n > 0 && (size_t)n < len && access(path, R_OK) == 0)
            return true;
    }
    return false;
}

bool rk_companion_pmix_begin(void)
{
    char path[PATH_MAX];

    return !rk_env(pmix_path) && rk_companion_find("pmix-plugins", path, sizeof(path)) && setenv(pmix_path, path, 1) == 0;
}

void rk_companion_pmix_end(void)
{
    unsetenv(pmix_path);
}
